// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"

	"trueup.dev/internal/testkit/fixture"
)

func TestNewEvent(t *testing.T) {
	named := types.NamespacedName{Namespace: "web", Name: "theme"}
	stored := theMap(func(cm *corev1.ConfigMap) { cm.UID, cm.ResourceVersion = "1-2-3", "999" })
	tests := map[string]struct {
		reason    string
		got, want Event
	}{
		"Older": {
			reason: "the kind is that of the scheme",
			got:    NewEvent(stored, assertScheme, corev1.EventTypeNormal, "Painted", "it is %s now", "blue"),
			want: Event{
				TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, NamespacedName: named,
				Type: "Normal", Reason: "Painted", Message: "it is blue now",
			},
		},
		"Newer": {
			reason: "the related object is told in full",
			got: NewEventf(
				fixture.NewDuck("web", "theme"), die{stored}, assertScheme, corev1.EventTypeWarning, "Painted", "Paint",
				"it is %s now", "blue",
			),
			want: Event{
				TypeMeta: metav1.TypeMeta{APIVersion: "fixture.trueup.dev/v1", Kind: "Resource"}, NamespacedName: named,
				Related: &corev1.ObjectReference{
					APIVersion: "v1", Kind: "ConfigMap", Namespace: "web", Name: "theme", UID: "1-2-3", ResourceVersion: "999",
				},
				Type: "Warning", Reason: "Painted", Action: "Paint", Note: "it is blue now",
			},
		},
		"NothingRelated": {
			reason: "there need not be a related object",
			got:    NewEventf(die{stored}, nil, assertScheme, corev1.EventTypeNormal, "Painted", "Paint", "100%%"),
			want: Event{
				TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, NamespacedName: named,
				Type: "Normal", Reason: "Painted", Action: "Paint", Note: "100%",
			},
		},
		"NilRelated": {
			reason: "nor need there be one behind the interface",
			got:    NewEventf(stored, (*corev1.ConfigMap)(nil), assertScheme, corev1.EventTypeNormal, "Painted", "Paint", ""),
			want: Event{
				TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, NamespacedName: named,
				Type: "Normal", Reason: "Painted", Action: "Paint",
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, tt.got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

func mustPanicWith(t *testing.T, want string, call func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if err, ok := recover().(error); !ok || err.Error() != want {
			t.Errorf("got panic %v, want %s", err, want)
		}
	}()
	call()
}

func TestConstructorsOfUnknownKinds(t *testing.T) {
	duck := &fixture.Duck{} // no scheme knows it, and it does not say what it is
	_, err := referenceTo(duck, assertScheme)
	if err == nil {
		t.Fatal("got no error for a duck without a kind")
	}
	for prefix, call := range map[string]func(){
		"event Painted about *fixture.Duck: ": func() { NewEvent(duck, assertScheme, "Normal", "Painted", "") },
		"event Painted with related *fixture.Duck: ": func() {
			NewEventf(theMap(), duck, assertScheme, "Normal", "Painted", "Paint", "")
		},
		"track request for *fixture.Duck: ": func() { NewTrackRequest(duck, theMap(), assertScheme) },
		"deletion of *fixture.Duck: ":       func() { NewDeleteRefFromObject(duck, assertScheme) },
	} {
		mustPanicWith(t, prefix+err.Error(), call)
	}
	mustPanicWith(t, "event Painted about <nil>: can't reference a nil object", func() {
		NewEvent(nil, assertScheme, "Normal", "Painted", "")
	})
	mustPanicWith(t, "track request by <nil>: is nil", func() { NewTrackRequest(theMap(), nil, assertScheme) })
}

// Both recorders have one list, so that the order of their events is known.
func TestRecorders(t *testing.T) {
	c := newAssertConfig("")
	config := c.Config()
	config.Recorder.Event(theMap(), corev1.EventTypeNormal, "One", "100%")
	config.Eventf(theMap(), theResource(), corev1.EventTypeNormal, "Two", "Act", "%d%%", 100)
	config.Recorder.Eventf(fixture.NewDuck("web", "blog"), corev1.EventTypeWarning, "Three", "%d%%", 100)
	config.Recorder.AnnotatedEventf(theMap(), map[string]string{"a": "b"}, corev1.EventTypeNormal, "Four", "%d%%", 100)
	config.EventRecorder.(events.AnnotatedEventRecorder).AnnotatedEventf(
		theMap(), nil, map[string]string{"a": "b"}, corev1.EventTypeNormal, "Five", "Act", "",
	)
	c.ExpectEvents = []Event{
		NewEvent(theMap(), assertScheme, corev1.EventTypeNormal, "One", "100%%"),
		NewEventf(theMap(), theResource(), assertScheme, corev1.EventTypeNormal, "Two", "Act", "100%%"),
		NewEvent(theResource(), assertScheme, corev1.EventTypeWarning, "Three", "100%%"),
		NewEvent(theMap(), assertScheme, corev1.EventTypeNormal, "Four", "100%%"),
		NewEventf(theMap(), nil, assertScheme, corev1.EventTypeNormal, "Five", "Act", ""),
	}
	c.AssertExpectations(t)
}

// A real recorder would log that, and emit nothing.
func TestDroppedEvents(t *testing.T) {
	for name, suffix := range map[string]string{"": "", "remote": ` for config "remote"`} {
		c := newAssertConfig(name)
		c.Config().Recorder.Event(&fixture.Duck{}, corev1.EventTypeNormal, "One", "")
		_, err := referenceTo(&fixture.Duck{}, assertScheme)
		c.AssertExpectations(nil)
		if diff := cmp.Diff(
			[]string{"Event dropped" + suffix + ": event One about *fixture.Duck: " + err.Error()}, c.observedErrors,
		); diff != "" {
			t.Errorf("failures (-want +got):\n%s", diff)
		}
	}
}

// A config may be used by several goroutines at once.
func TestConcurrentUse(t *testing.T) {
	const workers = 8
	c := newAssertConfig("")
	config := c.Config()
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			config.Recorder.Event(theMap(), corev1.EventTypeNormal, "One", "")
			config.Eventf(theMap(), nil, corev1.EventTypeNormal, "Two", "Act", "")
			if err := config.Tracker.TrackObject(theMap(), theResource()); err != nil {
				t.Error(err)
			}
			if err := config.APIReader.List(t.Context(), &corev1.ConfigMapList{}); err != nil {
				t.Error(err)
			}
			if err := config.Create(
				t.Context(), theMap(func(cm *corev1.ConfigMap) { cm.Name, cm.GenerateName = "", "new-" }),
			); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	c.AssertExpectations(nil)
	if got, want := len(c.observedErrors), 4*workers; got != want {
		t.Errorf("got %d failures, want one for each of %d calls: %q", got, want, c.observedErrors)
	}
}
