// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// checkName enables the check of controller-runtime that controller names are unique.
func checkName(_ context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
	bldr.WithOptions(controller.Options{SkipNameValidation: new(false)})
	return nil
}

var names atomic.Int64

// unique returns a name that was not used in this process. Names of controllers cannot be released.
func unique(name string) string { return fmt.Sprintf("%s-%d", name, names.Add(1)) }

func TestRoot_NameIsTheControllerName(t *testing.T) {
	w := newWorld(t, newResource(settled))
	events := newEventCache(w.Scheme)
	mgr := newManager(t, w, events)
	config := configFor(w, mgr)
	first, second := make(requests, 10), make(requests, 10)
	resource := func(name string, calls requests) interface {
		SetupWithManager(context.Context, ctrl.Manager) error
	} {
		return &resourceReconciler{Name: name, Setup: checkName, Config: config, Reconciler: notify(calls)}
	}
	aggregate := func(name string) *aggregateReconciler {
		return newAggregate(w, func(r *aggregateReconciler) { r.Name, r.Setup, r.Config = name, checkName, config })
	}
	ctx := context.Background()
	one, two, three := unique("one"), unique("two"), unique("three")
	wantErr(t, nil, resource(one, first).SetupWithManager(ctx, mgr))
	wantErr(t, nil, resource(two, second).SetupWithManager(ctx, mgr))
	wantErr(t, nil, aggregate(three).SetupWithManager(ctx, mgr))
	for name, err := range map[string]error{
		one:   resource(one, nil).SetupWithManager(ctx, mgr),
		two:   aggregate(two).SetupWithManager(ctx, mgr),
		three: resource(three, nil).SetupWithManager(ctx, mgr),
	} {
		if err == nil {
			t.Fatalf("no error for a second controller named %s", name)
		}
		contains(t, err.Error(), "controller with name "+name+" already exists")
	}

	// Both controllers run in one manager.
	start(t, mgr)
	events.changed(newResource(settled))
	equal(t, "request", testRequest, first.next(t, "an event, for the first"))
	equal(t, "request", testRequest, second.next(t, "an event, for the second"))
	for _, name := range []string{one, two, three} {
		deadline(t, name+" is in the metrics", func() bool { return reconciles(t, name) >= 1 })
	}
}

func TestRoot_DefaultControllerNameIsTheKind(t *testing.T) {
	w := newWorld(t)
	mgr := newManager(t, w, newEventCache(w.Scheme))
	config := configFor(w, mgr)
	kind := unique("Kind")
	unnamed := func() *reconcilers.ResourceReconciler[*unstructured.Unstructured] {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(fixture.GroupVersion.WithKind(kind))
		return &reconcilers.ResourceReconciler[*unstructured.Unstructured]{
			Type: u, Setup: checkName, Config: config, Reconciler: reconcilers.Sequence[*unstructured.Unstructured]{},
		}
	}
	wantErr(t, nil, unnamed().SetupWithManager(context.Background(), mgr))
	err := unnamed().SetupWithManager(context.Background(), mgr)
	if err == nil {
		t.Fatal("no error for a second controller with the same name")
	}
	contains(t, err.Error(), "controller with name "+strings.ToLower(kind)+" already exists")
}

func TestRoot_SetupLogsWithNameAndKind(t *testing.T) {
	w := newWorld(t)
	mgr := newManager(t, w, newEventCache(w.Scheme))
	log, lines := newLog(0)
	s := &setups{t: t, config: configFor(w, mgr)}
	r := &resourceReconciler{Name: "root", Config: s.config, Setup: s.hook("root"), Reconciler: sequence{s.part("a")}}
	wantErr(t, nil, r.SetupWithManager(withLog(context.Background(), log), mgr))
	for _, line := range []string{
		`root "level"=0 "msg"="set up root" "resourceType"="Resource.fixture.trueup.dev"`,
		`root/0/a "level"=0 "msg"="set up a" "resourceType"="Resource.fixture.trueup.dev"`,
	} {
		contains(t, "\n"+lines.all()+"\n", "\n"+line+"\n")
	}
}
