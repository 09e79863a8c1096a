// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/observe"
)

// SetUp adds controllers to a manager. Its context belongs to a plan, see [trueup.dev/external.InPlan]. It makes new
// reconcilers each time it is called, see [Options.Parallel].
type SetUp func(ctx context.Context, mgr ctrl.Manager) error

// Options configure a [Planner]. The zero value has all defaults.
type Options struct {
	// MaxReconciles limits how often one request is reconciled in a plan. Defaults to 10.
	MaxReconciles int

	// Timeout limits one reconcile: its context ends, and a reconciler that does not return then ends the plan with an
	// error. Defaults to 1 minute.
	Timeout time.Duration

	// AssumeReady lets objects that a plan creates or changes become ready: Deployments, StatefulSets, ReplicaSets and
	// DaemonSets have all replicas, Jobs are complete, Pods run, claims are bound, and Services have a load balancer. So
	// a plan shows what reconcilers do after they have waited for that. Defaults to false: nothing becomes ready.
	AssumeReady bool

	// WithoutDryRun does not ask the API server what it would store: plans use the defaults and the validation that they
	// know. It saves one request for each write. Defaults to false.
	WithoutDryRun bool

	// Parallel is the number of plans that [Planner.Each] makes at the same time. Each of them needs controllers of its
	// own, as reconcilers need not be safe for concurrent use: Each calls the set-up function again, with other managers,
	// as soon as it has several requests. Defaults to 1.
	Parallel int

	// FieldManager is the field manager of writes that name none. Defaults to the name of the program, as in client-go.
	FieldManager string

	// Mask decides which values are shown. Values of Secrets never are. By default, all others are.
	Mask observe.Mask
}

// Request is a request for a reconcile.
type Request struct {
	// Controller is the name of the controller. It may be empty if there is only one.
	Controller string `json:"controller,omitempty"`
	// Namespace and Name are the namespace and the name of the request. Cluster-scoped objects have no namespace.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

func newRequest(controller string, of reconcile.Request) Request {
	return Request{Controller: controller, Namespace: of.Namespace, Name: of.Name}
}

func (r Request) reconcile() reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: r.Namespace, Name: r.Name}}
}

// String returns the controller with the namespace and name.
func (r Request) String() string {
	return strings.TrimSpace(r.Controller + " " + qualified(r.Namespace, r.Name))
}

// Planner makes plans of the controllers of a program. Make one with [New], and close it.
type Planner struct {
	*shared

	setUp SetUp
	lane  *lane // of Plan, and the first one of Each

	// mu allows one call at a time.
	mu sync.Mutex
}

// Run returns what reconciles of the requests would change in a cluster. See [New] and [Planner.Plan].
func Run(ctx context.Context, cluster client.Client, setUp SetUp, requests ...Request) (*Plan, error) {
	p, err := New(ctx, cluster, setUp, Options{})
	if err != nil {
		return nil, err
	}
	defer p.Close()
	return p.Plan(ctx, requests...)
}

// New returns a planner for the controllers that setUp adds to a manager. The controllers get a client that reads from
// the cluster. The client of the cluster must read from the API server and not from a cache, and its scheme is the one
// of the manager.
//
// New lets the controllers start their watches, and starts no other runnables. Controllers whose requests are not of
// the type reconcile.Request have no part in plans. The error is the one of setUp, or the error of a watch, or reports
// that setUp adds no controller.
func New(ctx context.Context, cluster client.Client, setUp SetUp, options Options) (*Planner, error) {
	if cluster == nil || setUp == nil {
		return nil, errors.New("plan: a client and a set-up function are required")
	}
	if options.MaxReconciles < 0 {
		return nil, fmt.Errorf("plan: MaxReconciles must not be negative, got %d", options.MaxReconciles)
	}
	if options.Timeout < 0 {
		return nil, fmt.Errorf("plan: Timeout must not be negative, got %v", options.Timeout)
	}
	if options.Parallel < 0 {
		return nil, fmt.Errorf("plan: Parallel must not be negative, got %d", options.Parallel)
	}
	options.Parallel = cmp.Or(options.Parallel, 1)
	options.MaxReconciles = cmp.Or(options.MaxReconciles, 10)
	options.Timeout = cmp.Or(options.Timeout, defaultTimeout)
	options.FieldManager = cmp.Or(options.FieldManager, filepath.Base(os.Args[0]))
	kinds, err := newKindSet(cluster, cluster.Scheme())
	if err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	p := &Planner{setUp: setUp, shared: &shared{cluster: cluster, options: options, kinds: kinds}}
	p.names, p.dependents = &indexedNames{}, &dependents{cluster: cluster}
	p.forget()
	if !options.WithoutDryRun {
		p.dryRun = &dryRun{refused: map[string]bool{}}
	}
	if p.lane, err = newLane(ctx, p.shared, setUp); err != nil {
		return nil, err
	}
	return p, nil
}

// Close stops the watches of the controllers. The planner must not be used afterwards.
func (p *Planner) Close() { p.lane.close() }

// Controllers returns the names of the controllers, in the order in which they were added.
func (p *Planner) Controllers() []string { return p.lane.controllers() }
