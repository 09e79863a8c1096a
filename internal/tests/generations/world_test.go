// SPDX-License-Identifier: Apache-2.0

package generations

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"trueup.dev/duck"
	"trueup.dev/reconcilers"
	"trueup.dev/tracker"
	"trueup.dev/validation"
)

var group = schema.GroupVersion{Group: "generations.trueup.dev", Version: "v1"}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		panic(err)
	}
	scheme.AddKnownTypes(group, &Function{}, &FunctionList{}, &Image{}, &ImageList{}, &Gateway{}, &GatewayList{})
	metav1.AddToGroupVersion(scheme, group)
	return scheme
}

// copied returns a deep copy made by JSON, which is sufficient for the kinds of these tests.
func copied[T any](in *T) *T {
	data, err := json.Marshal(in)
	if err != nil {
		panic(err)
	}
	out := new(T)
	if err := json.Unmarshal(data, out); err != nil {
		panic(err)
	}
	return out
}

// world is an in-memory API server, a config for it, and the recorded events and patches.
type world struct {
	reconcilers.Config
	Events  []string
	Patches []string
}

func newWorld(t *testing.T, given ...client.Object) *world {
	t.Helper()
	scheme := newScheme()
	w := &world{}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(given...).WithStatusSubresource(&Function{}, &Gateway{}).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
				obj.SetCreationTimestamp(metav1.NewTime(time.Now())) // as an API server does
				return c.Create(ctx, obj, opts...)
			},
			Patch: func(
				ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption,
			) error {
				data, err := patch.Data(obj)
				if err != nil {
					return err
				}
				w.Patches = append(w.Patches, string(data))
				return c.Patch(ctx, obj, patch, opts...)
			},
		}).Build()
	w.Config = reconcilers.Config{
		Client: duck.NewDuckAwareClientWrapper(
			c,
		),
		APIReader: duck.NewDuckAwareAPIReaderWrapper(c, c),
		Recorder:  recorder{w},
		Tracker:   tracker.New(scheme, time.Hour),
	}
	return w
}

// reconcileRoot validates a root reconciler recursively and calls it for the object.
func reconcileRoot(t *testing.T, r interface {
	validation.Validator
	Reconcile(ctx context.Context, req reconcilers.Request) (reconcilers.Result, error)
}, obj client.Object,
) {
	t.Helper()
	if err := r.Validate(validation.WithRecursive(t.Context())); err != nil {
		t.Fatalf("validate: %v", err)
	}
	if _, err := r.Reconcile(
		t.Context(), reconcilers.Request{NamespacedName: client.ObjectKeyFromObject(obj)},
	); err != nil {
		t.Fatalf("reconcile: %v", err)
	}
}

// reconcileBelow calls a subreconciler for the object.
func reconcileBelow[T client.Object](t *testing.T, w *world, r reconcilers.SubReconciler[T], obj T) {
	t.Helper()
	reconcileRoot(t, &reconcilers.ResourceReconciler[T]{Reconciler: r, Config: w.Config}, obj)
}

func (w *world) get(t *testing.T, obj client.Object) {
	t.Helper()
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
		t.Fatal(err)
	}
}

func (w *world) gone(t *testing.T, obj client.Object) {
	t.Helper()
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); !apierrs.IsNotFound(err) {
		t.Errorf("%T %s still exists (%v)", obj, obj.GetName(), err)
	}
}

func equal(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// recorder records events.
type recorder struct{ world *world }

func (r recorder) Event(_ runtime.Object, eventtype, reason, message string) {
	r.world.Events = append(r.world.Events, eventtype+" "+reason+": "+message)
}

func (r recorder) Eventf(obj runtime.Object, eventtype, reason, format string, args ...any) {
	r.Event(obj, eventtype, reason, fmt.Sprintf(format, args...))
}

func (r recorder) AnnotatedEventf(
	obj runtime.Object, _ map[string]string, eventtype, reason, format string, args ...any,
) {
	r.Eventf(obj, eventtype, reason, format, args...)
}
