// SPDX-License-Identifier: Apache-2.0

package memapi_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"trueup.dev/internal/memapi"
	"trueup.dev/internal/memapi/apply"
	"trueup.dev/internal/memapi/kinds"
)

var widgets = schema.GroupVersion{Group: "example.org", Version: "v1"}

// Widget is a namespaced custom kind with a status.
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              WidgetSpec   `json:"spec,omitempty"`
	Status            WidgetStatus `json:"status,omitempty"`
}

type WidgetSpec struct {
	Size int      `json:"size,omitempty"`
	Tags []string `json:"tags,omitempty"`
}

type WidgetStatus struct {
	Ready bool `json:"ready,omitempty"`
}

type WidgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Widget `json:"items"`
}

func (w *Widget) DeepCopyObject() runtime.Object {
	copied := *w
	w.DeepCopyInto(&copied.ObjectMeta)
	copied.Spec.Tags = append([]string(nil), w.Spec.Tags...)
	return &copied
}

func (l *WidgetList) DeepCopyObject() runtime.Object {
	copied := *l
	copied.Items = nil
	for i := range l.Items {
		copied.Items = append(copied.Items, *l.Items[i].DeepCopyObject().(*Widget))
	}
	return &copied
}

var registry = sync.OnceValue(func() *kinds.Registry {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	scheme.AddKnownTypes(widgets, &Widget{}, &WidgetList{})
	metav1.AddToGroupVersion(scheme, widgets)
	r, err := kinds.NewRegistry(scheme)
	utilruntime.Must(err)
	return r
})

var applier = sync.OnceValue(func() *apply.Applier { return apply.New(registry()) })

// start is the initial time of the clock of a world.
var start = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// world is a server with a client.
type world struct {
	testing.TB
	*memapi.Server
	c   client.WithWatch
	now time.Time
}

func newWorld(tb testing.TB) *world {
	tb.Helper()
	w := &world{TB: tb, now: start}
	w.Server = memapi.New(memapi.Options{
		Registry: registry(), Applier: applier(), Seed: 1, Now: func() time.Time { return w.now },
	})
	w.c = w.Client("tester")
	return w
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) create(obj client.Object) {
	w.Helper()
	w.must(w.c.Create(w.Context(), obj))
}

// stored returns the stored object, or nil if it does not exist.
func (w *world) stored(obj client.Object) client.Object {
	w.Helper()
	gvk, err := apiutil.GVKForObject(obj, w.c.Scheme())
	w.must(err)
	return w.Get(gvk, client.ObjectKeyFromObject(obj))
}

// changes returns a summary of the events after a version.
func (w *world) changes(after int64) []string {
	var lines []string
	for _, e := range w.Events(after) {
		lines = append(lines, fmt.Sprintf("%s %s %s %+d", e.Type, e.Kind.Kind, e.Key.Name, e.Version-after))
	}
	return lines
}

func (w *world) wantChanges(after int64, want ...string) {
	w.Helper()
	w.equal("changes", want, w.changes(after))
}

func (w *world) equal(what string, want, got any) {
	w.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		w.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// wantError checks code, reason and text of an error. The expected text may be a prefix.
func (w *world) wantError(err error, code int32, reason metav1.StatusReason, text string) {
	w.Helper()
	status, ok := err.(apierrors.APIStatus)
	if !ok {
		w.Fatalf("error %v (%T), want one with status %d", err, err, code)
	}
	s := status.Status()
	if s.Code != code || s.Reason != reason || !strings.HasPrefix(s.Message, text) {
		w.Errorf("error %d %s %q, want %d %s %q", s.Code, s.Reason, s.Message, code, reason, text)
	}
}

// rule is a test of one behavior of a server.
type rule struct {
	name string
	test func(*world)
}

func runRules(t *testing.T, rules []rule) {
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) { r.test(newWorld(t)) })
	}
}

func widget(name string) *Widget {
	return &Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: WidgetSpec{Size: 1}}
}
