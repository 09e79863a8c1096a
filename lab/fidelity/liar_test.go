// SPDX-License-Identifier: Apache-2.0

package fidelity

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// liar is a server that alters one result of a real one.
type liar struct {
	// object alters the result of a successful call, and reports whether it could.
	object func(verb Verb, object client.Object) bool
	// items alters a list.
	items func([]runtime.Object) ([]runtime.Object, bool)
	// failure alters the result of a call, nil for one without an error.
	failure func(error) error
	// events alters the events of a kind.
	events func([]Event) ([]Event, bool)

	lied bool
}

func (l *liar) answer(verb Verb, object client.Object, err error) error {
	switch {
	case l.lied:
	case l.failure != nil:
		lie := l.failure(err)
		l.lied = lie != err //nolint:errorlint // it is the same one or it is not
		return lie
	case err == nil && l.object != nil:
		l.lied = l.object(verb, object)
	}
	return err
}

// server returns the liar's server.
func (l *liar) server(s Server) Server {
	lying := Server{Client: interceptor.NewClient(s.Client, interceptor.Funcs{
		Get: func(
			ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption,
		) error {
			return l.answer(Get, object, c.Get(ctx, key, object, options...))
		},
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			return l.answer(Create, object, c.Create(ctx, object, options...))
		},
		Update: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.UpdateOption) error {
			return l.answer(Update, object, c.Update(ctx, object, options...))
		},
		Patch: func(
			ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption,
		) error {
			return l.answer(Patch, object, c.Patch(ctx, object, patch, options...))
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			err := c.List(ctx, list, options...)
			if err != nil || l.items == nil || l.lied {
				return err
			}
			items, err := meta.ExtractList(list)
			if err != nil {
				return err
			}
			if items, l.lied = l.items(items); l.lied {
				return meta.SetList(list, items)
			}
			return nil
		},
	}), Events: s.Events}
	if l.events != nil {
		lying.Events = func(ctx context.Context, kind *Kind, namespace string) ([]Event, error) {
			events, err := s.Events(ctx, kind, namespace)
			if !l.lied {
				events, l.lied = l.events(events)
			}
			return events, err
		}
	}
	return lying
}

// lies are alterations that a comparison must find.
var lies = map[string]liar{
	"a label": {
		object: func(_ Verb, o client.Object) bool { o.SetLabels(map[string]string{"a": "lie"}); return true },
	},
	"a finalizer": {object: func(_ Verb, o client.Object) bool { o.SetFinalizers([]string{"a/lie"}); return true }},
	"a generation": {object: func(_ Verb, o client.Object) bool {
		o.SetGeneration(o.GetGeneration() + 1)
		return true
	}},
	"a kind": {object: func(_ Verb, o client.Object) bool {
		o.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Lie"})
		return true
	}},
	"no uid": {object: func(_ Verb, o client.Object) bool { o.SetUID(""); return true }},
	"a uid of its own for an update": {object: func(verb Verb, o client.Object) bool {
		o.SetUID(types.UID("11111111-1111-1111-1111-111111111111"))
		return verb == Update
	}},
	"a version that is older": {object: func(verb Verb, o client.Object) bool {
		if verb == Update {
			o.SetResourceVersion("1")
		}
		return verb == Update
	}},
	"a version that is newer": {object: func(verb Verb, o client.Object) bool {
		if verb == Get {
			o.SetResourceVersion(o.GetResourceVersion() + "0")
		}
		return verb == Get
	}},
	"no version": {object: func(_ Verb, o client.Object) bool {
		had := o.GetResourceVersion() != ""
		o.SetResourceVersion("")
		return had
	}},
	"a deletion a minute later": {object: func(_ Verb, o client.Object) bool {
		if o.GetDeletionTimestamp() == nil {
			return false
		}
		o.SetDeletionTimestamp(&metav1.Time{Time: o.GetDeletionTimestamp().Add(time.Minute)})
		return true
	}},
	"a creation of old": {object: func(_ Verb, o client.Object) bool {
		o.SetCreationTimestamp(metav1.NewTime(time.Unix(0, 0)))
		return true
	}},
	"managed fields of another": {object: func(_ Verb, o client.Object) bool {
		managed := o.GetManagedFields()
		if len(managed) == 0 {
			return false
		}
		managed[0].Manager = "liar"
		o.SetManagedFields(managed)
		return true
	}},
	"a missing item": {items: func(items []runtime.Object) ([]runtime.Object, bool) {
		return items[:max(0, len(items)-1)], len(items) > 0
	}},
	"items in another order": {items: func(items []runtime.Object) ([]runtime.Object, bool) {
		slices.Reverse(items)
		generated := func(o runtime.Object) bool { return o.(client.Object).GetGenerateName() != "" }
		return items, len(items) > 1 && !slices.ContainsFunc(items, generated)
	}},
	"an error that was none": {failure: func(error) error { return nil }},
	"an unexpected error": {failure: func(err error) error {
		if err == nil {
			return errors.New("a lie")
		}
		return err
	}},
	"a message": {failure: altered(func(s *metav1.Status) { s.Message += " or not" })},
	"a reason":  {failure: altered(func(s *metav1.Status) { s.Reason = metav1.StatusReasonTimeout })},
	"a code":    {failure: altered(func(s *metav1.Status) { s.Code++ })},
	"details":   {failure: altered(func(s *metav1.Status) { s.Details = nil })},
	"a missing event": {events: func(events []Event) ([]Event, bool) {
		return events[:max(0, len(events)-1)], len(events) > 0
	}},
	"an event twice": {events: func(events []Event) ([]Event, bool) {
		if len(events) == 0 {
			return events, false
		}
		return append(events, events[len(events)-1]), true
	}},
	"events in another order": {events: func(events []Event) ([]Event, bool) {
		slices.Reverse(events)
		return events, len(events) > 1
	}},
	"another type of an event": {events: func(events []Event) ([]Event, bool) {
		if len(events) == 0 {
			return events, false
		}
		events[0].Type = "LIE"
		return events, true
	}},
	"the object of an event": {events: func(events []Event) ([]Event, bool) {
		if len(events) == 0 {
			return events, false
		}
		events[0].Object["metadata"].(Object)["labels"] = Object{"a": "lie"}
		return events, true
	}},
}

func altered(alter func(*metav1.Status)) func(error) error {
	return func(err error) error {
		status, ok := errors.AsType[*apierrors.StatusError](err)
		if !ok {
			return err
		}
		lie := &apierrors.StatusError{ErrStatus: *status.ErrStatus.DeepCopy()}
		if alter(&lie.ErrStatus); lie.ErrStatus.Details == nil && status.ErrStatus.Details == nil {
			return err
		}
		return lie
	}
}

// Two equal servers have no differences, and one altered result is a difference.
func TestLies(t *testing.T) {
	const sequences = 120
	ours, generator := newOurs(t), Generator{Kinds: catalog, Namespaces: namespaces}
	for seed := range uint64(sequences) {
		sequence := generator.Sequence(seed)
		truth, err := ours.run(t.Context(), "fidelity-1", sequence)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ours.run(t.Context(), "fidelity-2", sequence)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range Compare(truth, again, nil) {
			t.Errorf("seed %d: operation %d, %s: a server differs from itself: %s", seed, d.Step+1, d.operation, d)
		}
	}
	for name, lie := range lies {
		t.Run(name, func(t *testing.T) {
			told := 0
			for seed := uint64(0); seed < sequences && told < 8; seed++ {
				sequence := generator.Sequence(seed)
				truth, err := ours.run(t.Context(), "fidelity-1", sequence)
				if err != nil {
					t.Fatal(err)
				}
				liar := lie
				lies, err := liar.server(ours.start(t.Context(), "fidelity-1")).Run(t.Context(), "fidelity-1", sequence)
				if err != nil {
					t.Fatal(err)
				}
				if liar.lied {
					told++
					if found := Compare(truth, lies, nil); len(found) == 0 {
						t.Errorf("seed %d: the comparison found nothing", seed)
					}
				}
			}
			if told == 0 {
				t.Error("no result to alter")
			}
		})
	}
}
