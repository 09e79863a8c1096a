// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/internal/memapi"
)

func TestStaleMoments(t *testing.T) {
	at := func(generation int64, deleting bool) client.Object {
		obj := newSecret("a")
		obj.Generation = generation
		if deleting {
			obj.DeletionTimestamp = new(metav1.Now())
		}
		return obj
	}
	event := func(name string, kind watch.EventType, before, after client.Object) memapi.Event {
		return memapi.Event{Type: kind, Key: client.ObjectKey{Name: name}, Old: before, Object: after}
	}
	added := event("a", watch.Added, nil, at(1, false))
	touched := event("a", watch.Modified, at(1, false), at(1, false))
	changed := event("a", watch.Modified, at(1, false), at(2, false))
	ending := event("a", watch.Modified, at(1, false), at(1, true))
	deleted := event("a", watch.Deleted, at(1, true), at(1, true))
	other := event("b", watch.Added, nil, at(1, false))
	for _, tt := range []struct {
		name    string
		events  []memapi.Event
		primary bool
		want    []int
	}{
		{"nothing", nil, true, nil},
		{"the last three", []memapi.Event{touched, touched, touched, touched, touched}, true, []int{1, 2, 3}},
		{"a generation", []memapi.Event{touched, changed, touched, touched, touched}, true, []int{1, 2, 3, 4}},
		{"of another kind", []memapi.Event{touched, changed, touched, touched, touched}, false, []int{1, 2, 3}},
		{
			"a deletion",
			[]memapi.Event{added, ending, touched, deleted, touched, touched, touched},
			true,
			[]int{1, 2, 3, 4, 6, 7},
		},
		{
			"three each",
			[]memapi.Event{other, other, other, other, touched, touched, touched},
			true,
			[]int{1, 2, 3, 4, 5, 6},
		},
		{
			"an earlier life although many others were created",
			[]memapi.Event{added, deleted, added, other, other, other, touched, touched, touched},
			true,
			[]int{1, 2, 3, 4, 5, 6, 8},
		},
	} {
		if diff := cmp.Diff(tt.want, staleMoments(tt.events, tt.primary)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// TestStaleStartShowsEarlierLife deletes what belongs to another incarnation of the owner than that of the cache. The
// cache has to be six events old for that. The correct twin asks the API server first.
func TestStaleStartShowsEarlierLife(t *testing.T) {
	scenario := func(asks bool) Scenario {
		s := secretScenario(func(ctx context.Context, e Env, secret *corev1.Secret) (reconcile.Result, error) {
			child := &corev1.ConfigMap{}
			err := e.Client.Get(ctx, client.ObjectKeyFromObject(secret), child)
			switch {
			case apierrs.IsNotFound(err):
				child = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: secret.Namespace, Name: secret.Name}}
				if err := controllerutil.SetControllerReference(secret, child, e.Scheme); err != nil {
					return reconcile.Result{}, err
				}
				return reconcile.Result{}, e.Client.Create(ctx, child)
			case err != nil || metav1.IsControlledBy(child, secret):
				return reconcile.Result{}, err
			}
			if owner := metav1.GetControllerOf(child); owner == nil || owner.Name != secret.Name {
				return reconcile.Result{}, apierrs.NewConflict(corev1.Resource("configmaps"), child.Name, nil)
			}
			if asks {
				current := &corev1.Secret{}
				if err := e.APIReader.Get(ctx, client.ObjectKeyFromObject(secret), current); err != nil {
					return reconcile.Result{}, client.IgnoreNotFound(err)
				}
				if current.UID != secret.UID {
					return reconcile.Result{}, nil // an event will follow
				}
			}
			err = e.Client.Delete(ctx, child, client.Preconditions{UID: &child.UID})
			return reconcile.Result{}, client.IgnoreNotFound(err)
		})
		s.Owns = []client.Object{&corev1.ConfigMap{}}
		s.Consistency = TimeTravel
		label := func(value string) Step {
			return Change(newSecret("a"), func(s *corev1.Secret) { s.Labels = map[string]string{"step": value} })
		}
		s.Steps = Steps(
			Apply(newSecret("a")), Settle(), Delete(newSecret("a")), Settle(),
			Apply(newSecret("a")), label("1"), label("2"), label("3"), label("4"), Settle(),
		)
		return s
	}
	report, err := Check(t, scenario(false), Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	f := report.Failure
	if f == nil || len(f.schedule) != 1 || f.schedule[0].Fault != FaultStaleStart ||
		!strings.Contains(f.schedule[0].Point.String(), "6 back") {
		t.Errorf("got %v, want that a stale start six events back is found", f)
	}
	report, err = Check(t, scenario(true), Options{Seed: 1})
	if err != nil || report.Failure != nil {
		t.Error(report.Failure, err)
	}
}
