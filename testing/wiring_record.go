// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"trueup.dev/reconcilers"
	"trueup.dev/testing/internal/fakeapi"
)

// wiringTimeout is how long it may take to start controllers. It takes a millisecond, unless a source blocks.
const wiringTimeout = 10 * time.Second

// setUpFunc sets a reconciler up that uses the config.
type setUpFunc = func(ctx context.Context, mgr ctrl.Manager, config reconcilers.Config) error

// recordWiring has setUp set a reconciler up with a manager that records, and returns what it has asked for. The error
// lists all that went wrong.
func recordWiring(
	ctx context.Context, scheme *runtime.Scheme, setUp setUpFunc, given ...client.Object,
) (*Wiring, error) {
	ctx, cancel := context.WithTimeout(ctx, wiringTimeout)
	defer cancel()
	if scheme == nil {
		return nil, errors.New("a scheme is required")
	}
	stored, events, err := copyForWiring(scheme, given)
	if err != nil {
		return nil, err
	}
	mgr, err := newRecordingManager(scheme, stored)
	if err != nil {
		return nil, err
	}
	config := reconcilers.NewConfig(mgr, nil, time.Hour)
	if err := setUp(ctx, mgr, config); err != nil {
		return nil, fmt.Errorf("set-up failed: %w", err)
	}
	return mgr.wiring(ctx, config, events)
}

// copyForWiring returns copies of the objects that are given: for the API, which they belong to, and to make events of.
func copyForWiring(scheme *runtime.Scheme, given []client.Object) (stored, events []client.Object, err error) {
	problems := []error{}
	for i, obj := range given {
		obj, err := givenObject(obj, scheme)
		if err != nil {
			problems = append(problems, fmt.Errorf("given[%d]: %w", i, err))
			continue
		}
		stored, events = append(stored, obj), append(events, obj.DeepCopyObject().(client.Object))
	}
	return stored, events, errors.Join(append(problems, prefixed("given", fakeapi.ValidateGiven(stored, scheme))...)...)
}

// wiring starts the controllers, one after the other, and returns their wirings.
func (m *recordingManager) wiring(
	ctx context.Context, config reconcilers.Config, given []client.Object,
) (*Wiring, error) {
	if len(m.controllers) == 0 {
		return nil, errors.Join(append(m.problems, errors.New("set-up has not added a controller to the manager"))...)
	}
	wirings, problems := []Wiring{}, m.problems
	for _, cluster := range m.clusters() {
		cluster.cache.started.Store(true)
	}
	m.takeHandlers() // Those of the author's own, which no controller has to do with.
	for _, controller := range m.controllers {
		err := controller.run(ctx, func() {
			wirings = append(wirings, m.classify(controller, config, given))
		})
		problems = append(problems, err)
	}
	for _, cluster := range m.clusters() {
		problems = append(problems, cluster.cache.problems...)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}

	wiring := &wirings[0]
	if len(wirings) > 1 {
		wiring.Others = wirings[1:]
	}
	wiring.Indexes = m.indexes()
	return wiring, nil
}

// classify returns the wiring of a controller that was started.
func (m *recordingManager) classify(
	controller *recordedController, config reconcilers.Config, given []client.Object,
) Wiring {
	prober := &prober{
		scheme: m.GetScheme(), mapper: m.GetRESTMapper(), tracker: config.Tracker, given: given,
		queue: controller.queue, atStart: controller.queue.take(), notes: sets.New[string](),
	}
	wiring := prober.classify(m.takeHandlers())
	wiring.AtStart = prober.atStart
	wiring.Options = controller.options.withoutDefaults()
	wiring.notes = sets.List(prober.notes)
	wiring.Controller = controller.name
	for _, watch := range wiring.For {
		if kind, err := apiutil.GVKForObject(watch.Object, m.GetScheme()); err == nil &&
			strings.ToLower(kind.Kind) == controller.name {
			wiring.Controller = ""
		}
	}
	return wiring
}

// takeHandlers returns the handlers that were added to all caches since it was called last.
func (m *recordingManager) takeHandlers() []watchHandler {
	handlers := []watchHandler{}
	for _, cluster := range m.clusters() {
		handlers = append(handlers, cluster.cache.takeHandlers()...)
	}
	return handlers
}

// indexes returns the indexes of all caches, in order.
func (m *recordingManager) indexes() []Index {
	var indexes []Index
	for _, cluster := range m.clusters() {
		indexes = append(indexes, cluster.cache.indexes...)
	}
	slices.SortFunc(indexes, func(a, b Index) int { return cmp.Compare(a.text(), b.text()) })
	return indexes
}
