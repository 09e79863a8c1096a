// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/internal/offline"
	"trueup.dev/internal/planned"
	"trueup.dev/observe"
	"trueup.dev/observe/metrics"
)

// SetUp adds controllers to a manager. Its context belongs to a plan, see [trueup.dev/external.InPlan].
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

	// FieldManager is the field manager of writes that name none. Defaults to the name of the program, as in client-go.
	FieldManager string

	// Mask decides which values are shown. Values of Secrets never are. By default, all others are.
	Mask observe.Mask
}

// Request is a request for a reconcile.
type Request struct {
	// Controller is the name of the controller. It may be empty if there is only one.
	Controller string `json:"controller,omitempty"`
	// Namespace and Name are those of the request. Cluster-scoped objects have no namespace.
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
	cluster    client.Client
	options    Options
	client     *overlayClient
	kinds      *kindSet
	manager    *manager
	informers  *informers
	dependents *dependents
	dryRun     *dryRun

	stop    context.CancelFunc
	running sync.WaitGroup

	// mu allows one plan at a time.
	mu sync.Mutex

	// hung is the error of a reconcile that has not returned. What it still writes belongs to no plan.
	hung error

	announcing sync.Mutex
	announced  []string
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
// the type reconcile.Request have no part in plans. The error is the one of setUp, or that of a watch, or reports that
// setUp adds no controller.
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
	options.MaxReconciles = cmp.Or(options.MaxReconciles, 10)
	options.Timeout = cmp.Or(options.Timeout, defaultTimeout)
	options.FieldManager = cmp.Or(options.FieldManager, filepath.Base(os.Args[0]))
	kinds, err := newKindSet(cluster, cluster.Scheme())
	if err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	p := &Planner{cluster: cluster, options: options, kinds: kinds}
	index := &indexes{extracts: map[indexID]client.IndexerFunc{}}
	index.forget()
	p.client = &overlayClient{cluster: cluster, indexes: index}
	p.informers = &informers{Reader: p.client, cluster: cluster, indexes: index}
	p.dependents = &dependents{cluster: cluster}
	if !options.WithoutDryRun {
		p.dryRun = &dryRun{refused: map[string]bool{}}
	}
	p.begin()
	p.manager = &manager{events: &events{scheme: cluster.Scheme()}}
	p.manager.Leader = true
	p.manager.Cluster = offline.Cluster{
		Scheme: cluster.Scheme(), Mapper: kinds.mapper, Client: p.client, APIReader: p.client, Cache: p.informers,
	}
	observe.Of(p.manager).Remove(metrics.Default())
	if err := setUp(p.context(ctx), p.manager); err != nil {
		return nil, fmt.Errorf("plan: set-up failed: %w", err)
	}
	if len(p.manager.queues) == 0 {
		return nil, errors.New("plan: set-up adds no controller to the manager")
	}
	if err := p.start(ctx); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// start starts the watches of the controllers.
func (p *Planner) start(ctx context.Context) error {
	ctx, p.stop = context.WithCancel(p.context(ctx))
	for _, q := range p.manager.queues {
		failed := make(chan error, 1)
		p.running.Go(func() { failed <- q.runnable.Start(ctx) })
		select {
		case <-q.started:
		case err := <-failed:
			return fmt.Errorf("plan: controller %s did not start: %w", q.name, cmp.Or(err, ctx.Err()))
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// Close stops the watches of the controllers. The planner must not be used afterwards.
func (p *Planner) Close() {
	p.stop()
	p.running.Wait()
}

// Controllers returns the names of the controllers, in the order in which they were added.
func (p *Planner) Controllers() []string {
	var names []string
	for _, q := range p.manager.queues {
		names = append(names, q.name)
	}
	return names
}

func (p *Planner) context(ctx context.Context) context.Context {
	return planned.With(ctx, func(text string) {
		p.announcing.Lock()
		defer p.announcing.Unlock()
		if !slices.Contains(p.announced, text) { // a later reconcile does not see that it is done
			p.announced = append(p.announced, text)
		}
	})
}

// forget drops what earlier plans have learned about the objects of the cluster.
func (p *Planner) forget() {
	p.client.indexes.forget()
	p.kinds.forget()
	p.dependents.forget()
}

// begin replaces the overlay by an empty one.
func (p *Planner) begin() *overlay {
	o := newOverlay(p.cluster, p.kinds, p.options.FieldManager, p.dryRun)
	o.notify = p.informers.deliver
	p.client.current.Store(o)
	return o
}

// queueOf returns the queue of a request.
func (p *Planner) queueOf(r Request) (*queue, error) {
	if r.Controller == "" && len(p.manager.queues) == 1 {
		return p.manager.queues[0], nil
	}
	at := slices.IndexFunc(p.manager.queues, func(q *queue) bool { return q.name == r.Controller })
	if at < 0 {
		return nil, fmt.Errorf(
			"plan: unknown controller %q, must be one of %s", r.Controller, strings.Join(p.Controllers(), ", "),
		)
	}
	return p.manager.queues[at], nil
}
