// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/memapi"
	"trueup.dev/internal/memapi/kinds"
	"trueup.dev/reconcilers"
)

// Does an event with a long note and without an action arrive?
func TestEvents_EventRecorder(t *testing.T) {
	e := newEnv(t)
	parent := newResource("parent", nil)
	parent.Namespace = e.Namespace
	e.Add(parent)
	e.start(func(_ context.Context, _ ctrl.Manager, c reconcilers.Config) error {
		c.Eventf(parent, nil, corev1.EventTypeNormal, "Long", "", "%s", strings.Repeat("ä", 1000))
		return nil
	})
	found := eventsv1.Event{}
	e.Eventually(func() error {
		list := &eventsv1.EventList{}
		if err := e.List(e.Context(), list, client.InNamespace(e.Namespace)); err != nil {
			return err
		}
		for _, event := range list.Items {
			if event.Reason == "Long" {
				found = event
				return nil
			}
		}
		return fmt.Errorf("no event Long among %d", len(list.Items))
	})
	if want := strings.Repeat("ä", 510) + "…"; found.Note != want || found.Action != "Long" {
		t.Errorf("action %q, note of %d bytes: %s", found.Action, len(found.Note), found.Note)
	}
}

// Does the API in memory refuse the events that a real one refuses?
func TestEvents_Refused(t *testing.T) {
	e := newEnv(t)
	registry, err := kinds.NewRegistry(e.Scheme())
	e.Must(err)
	memory := memapi.New(memapi.Options{Registry: registry}).Client("test")
	e.Must(memory.Create(e.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.Namespace}}))
	valid := func(edit func(*eventsv1.Event)) *eventsv1.Event {
		event := &eventsv1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, GenerateName: "event-"},
			EventTime:  metav1.NewMicroTime(time.Unix(1, 0)), ReportingController: "a", ReportingInstance: "a",
			Action: "Do", Reason: "Done", Type: corev1.EventTypeNormal,
			Regarding: corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: e.Namespace, Name: "a"},
		}
		edit(event)
		return event
	}
	old := func(edit func(*corev1.Event)) *corev1.Event {
		event := &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, GenerateName: "event-"},
			EventTime:  metav1.NewMicroTime(time.Unix(1, 0)), ReportingController: "a", ReportingInstance: "a",
			Action: "Do", Reason: "Done", Type: corev1.EventTypeNormal,
			InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: e.Namespace, Name: "a"},
		}
		edit(event)
		return event
	}
	long := strings.Repeat("x", 1025)
	for name, c := range map[string]struct {
		event   client.Object
		refused bool
	}{
		"valid":               {valid(func(*eventsv1.Event) {}), false},
		"no action":           {valid(func(e *eventsv1.Event) { e.Action = "" }), true},
		"long texts":          {valid(func(e *eventsv1.Event) { e.Note, e.Action, e.Reason = long, long, long }), true},
		"no time":             {valid(func(e *eventsv1.Event) { e.EventTime = metav1.MicroTime{} }), true},
		"no controller":       {valid(func(e *eventsv1.Event) { e.ReportingController, e.ReportingInstance = "", "" }), true},
		"other type":          {valid(func(e *eventsv1.Event) { e.Type = "Other" }), true},
		"a count":             {valid(func(e *eventsv1.Event) { e.DeprecatedCount = 1 }), true},
		"a series of nothing": {valid(func(e *eventsv1.Event) { e.Series = &eventsv1.EventSeries{} }), true},
		"another namespace":   {valid(func(e *eventsv1.Event) { e.Regarding.Namespace = "" }), true},
		"old, valid":          {old(func(*corev1.Event) {}), false},
		"old, no action":      {old(func(e *corev1.Event) { e.Action, e.Message = "", long }), true},
		"old, without a time": {old(func(e *corev1.Event) { e.EventTime, e.Message = metav1.MicroTime{}, long }), false},
	} {
		t.Run(name, func(t *testing.T) {
			text := func(err error) string {
				if err == nil {
					return ""
				}
				return err.Error()
			}
			want := text(e.Create(e.Context(), c.event.DeepCopyObject().(client.Object)))
			got := text(memory.Create(e.Context(), c.event.DeepCopyObject().(client.Object)))
			generated := func(text string) string { // generated names differ
				_, rest, _ := strings.Cut(text, " is invalid: ")
				return rest
			}
			if diff := cmp.Diff(generated(want), generated(got)); diff != "" || (want != "") != c.refused {
				t.Errorf("refused %v, errors (-real API +in memory):\n%s", c.refused, diff)
			}
		})
	}
}
