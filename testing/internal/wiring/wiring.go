// SPDX-License-Identifier: Apache-2.0

package wiring

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"trueup.dev/internal/objects/nilcheck"
	"trueup.dev/reconcilers"
)

// Wiring is what a set-up has asked for.
type Wiring struct {
	// Controllers are in the order in which they were added.
	Controllers []Controller
	// Indexes are the indexes of all clusters, sorted.
	Indexes []Index
}

// Controller is what a controller reconciles, and when.
type Controller struct {
	// Name is empty if it is the default, the kind in lower case.
	Name string
	// For are the watches whose events lead to a request for the object itself.
	For []Watch
	// Owns are the watches whose events lead to a request for an owner of the object.
	Owns []Watch
	// Tracks are the watches whose events lead to a request for each resource that tracks the object.
	Tracks []Watch
	// Watches are all other watches.
	Watches []Watch
	// AtStart are the requests that the controller gets without an event.
	AtStart []reconcilers.Request
	Options controller.Options
	// Notes are what a reader should know about the observation.
	Notes []string
}

// Watch is a watched kind.
type Watch struct {
	// Object is an empty object of the kind, in the form that is watched.
	Object client.Object
	// Cluster is empty for the cluster of the manager.
	Cluster string
	// Ignores are the changes that lead to no request.
	Ignores []Change
}

func (w Watch) String() string { return Describe(w.Object, w.Cluster) }

// Index is an index of a cache.
type Index struct {
	Object  client.Object
	Field   string
	Cluster string
}

func (i Index) String() string { return Describe(i.Object, i.Cluster) + " by " + i.Field }

// Describe returns a text that identifies the kind of an object, its form, and the cluster.
func Describe(obj client.Object, cluster string) string {
	text := "nothing"
	if !nilcheck.IsNil(obj) {
		obj = blank(obj)
		goType := reflect.TypeOf(obj).Elem()
		text = goType.PkgPath() + "." + goType.Name()
		if carriesKind(obj) {
			version, kind := obj.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
			form := "metadata only"
			if _, ok := obj.(runtime.Unstructured); ok {
				form = "unstructured"
			}
			text = fmt.Sprintf("%s %s (%s)", version, kind, form)
		}
	}
	if cluster != "" {
		text += fmt.Sprintf(" in cluster %q", cluster)
	}
	return text
}

// startTimeout is how long a set-up and the start of its controllers may take together. They take a millisecond, unless
// a source blocks.
const startTimeout = 10 * time.Second

// Observe calls setUp and returns what it asks for. The API has the given objects, which belong to Observe from then on
// and also serve as objects of made-up events. The error lists all problems.
//
// Observe may be called concurrently.
func Observe(
	ctx context.Context, scheme *runtime.Scheme, given []client.Object,
	setUp func(ctx context.Context, mgr ctrl.Manager, config reconcilers.Config) error,
) (*Wiring, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	objects := make([]client.Object, len(given))
	for i, obj := range given {
		objects[i] = obj.DeepCopyObject().(client.Object)
	}
	mgr, err := newManager(scheme, given)
	if err != nil {
		return nil, err
	}
	config := reconcilers.NewConfig(mgr, nil, time.Hour)
	if err := setUp(ctx, mgr, config); err != nil {
		return nil, fmt.Errorf("set-up failed: %w", err)
	}
	return mgr.observe(ctx, config, objects)
}

// observe starts the controllers one after the other.
func (m *observedManager) observe(
	ctx context.Context, config reconcilers.Config, given []client.Object,
) (*Wiring, error) {
	if len(m.controllers) == 0 {
		return nil, errors.Join(append(m.problems, errors.New("set-up has not added a controller to the manager"))...)
	}
	wiring, problems := &Wiring{}, m.problems
	for _, cluster := range m.clusters() {
		cluster.cache.started.Store(true)
	}
	m.takeHandlers() // these were added during set-up, and do not belong to a controller
	for _, c := range m.controllers {
		problems = append(problems, c.run(ctx, func() {
			wiring.Controllers = append(wiring.Controllers, m.classify(c, config, given))
		}))
	}
	for _, cluster := range m.clusters() {
		problems = append(problems, cluster.cache.problems...)
		wiring.Indexes = append(wiring.Indexes, cluster.cache.indexes...)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	slices.SortFunc(wiring.Indexes, func(a, b Index) int { return cmp.Compare(a.String(), b.String()) })
	return wiring, nil
}

// classify returns what a started controller has asked for.
func (m *observedManager) classify(
	c *observedController, config reconcilers.Config, given []client.Object,
) Controller {
	p := newProber(m, config.Tracker, given, c.queue)
	observed := p.classify(m.takeHandlers())
	observed.Options = c.Options()
	observed.Name = c.Name()
	for _, watch := range observed.For {
		if kind, err := apiutil.GVKForObject(watch.Object, m.Scheme); err == nil && strings.ToLower(kind.Kind) == c.Name() {
			observed.Name = ""
		}
	}
	return observed
}
