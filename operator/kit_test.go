// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/operator"
	"trueup.dev/reconcilers"
)

const testFinalizer = "example.com/test"

var (
	errTest     = errors.New("failure of the test")
	testRequest = reconcilers.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "test"}}
)

// version returns a version of the test resource, with this UID, generation and resource version. The value of its
// spec is the generation.
func version(uid string, generation, resourceVersion int, changes ...func(*fixture.Resource)) *fixture.Resource {
	r := &fixture.Resource{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "test", UID: types.UID(uid), Generation: int64(generation),
			ResourceVersion: strconv.Itoa(resourceVersion),
		},
		Spec: fixture.ResourceSpec{Fields: map[string]string{"value": strconv.Itoa(generation)}},
	}
	for _, change := range changes {
		change(r)
	}
	return r
}

func deleting(r *fixture.Resource) { r.DeletionTimestamp = &metav1.Time{Time: time.Unix(1e9, 0)} }

func with(finalizers ...string) func(*fixture.Resource) {
	return func(r *fixture.Resource) { r.Finalizers = append(r.Finalizers, finalizers...) }
}

func labeled(value string) func(*fixture.Resource) {
	return func(r *fixture.Resource) { r.Labels = map[string]string{"label": value} }
}

func observed(r *fixture.Resource) { r.Status.ObservedGeneration = 1 }

// world is an API server in memory, with a record of its writes.
type world struct {
	t      testing.TB
	server client.WithWatch
	config reconcilers.Config

	mu     sync.Mutex
	events []string
	writes []string
	// fail, if set, returns the error of a write.
	fail func(line string) error
}

func newWorld(t testing.TB, given ...client.Object) *world {
	w := &world{t: t}
	w.server = fake.NewClientBuilder().WithScheme(fixture.NewScheme()).WithObjects(given...).
		WithStatusSubresource(&fixture.Resource{}).Build()
	recorded := interceptor.NewClient(w.server, interceptor.Funcs{
		Patch: func(
			ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption,
		) error {
			if err := w.write("patch", obj, patch); err != nil {
				return err
			}
			return c.Patch(ctx, obj, patch, opts...)
		},
		SubResourcePatch: func(
			ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch,
			opts ...client.SubResourcePatchOption,
		) error {
			if err := w.write("patch "+sub, obj, patch); err != nil {
				return err
			}
			return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
		},
		SubResourceUpdate: func(
			ctx context.Context, c client.Client, sub string, obj client.Object, opts ...client.SubResourceUpdateOption,
		) error {
			if err := w.write("update "+sub, obj, nil); err != nil {
				return err
			}
			return c.SubResource(sub).Update(ctx, obj, opts...)
		},
	})
	w.config = reconcilers.Config{Client: recorded, APIReader: w.server, Recorder: recorderOf{w}}
	return w
}

func (w *world) write(verb string, obj client.Object, patch client.Patch) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	line := verb
	if patch != nil {
		data, err := patch.Data(obj)
		if err != nil {
			return err
		}
		line += " " + string(data)
	}
	if w.fail != nil {
		if err := w.fail(line); err != nil {
			return err
		}
	}
	w.writes = append(w.writes, line)
	return nil
}

// takeWrites returns the writes since its last call.
func (w *world) takeWrites() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	writes := w.writes
	w.writes = nil
	return writes
}

// stored returns the test resource from the server.
func (w *world) stored() *fixture.Resource {
	w.t.Helper()
	r := &fixture.Resource{}
	if err := w.server.Get(context.Background(), testRequest.NamespacedName, r); err != nil {
		w.t.Fatal(err)
	}
	return r
}

// context returns the context of subreconcilers below a root.
func (w *world) context() context.Context {
	ctx := reconcilers.WithStash(context.Background())
	ctx = reconcilers.StashRequest(ctx, testRequest)
	ctx = reconcilers.StashConfig(ctx, w.config)
	ctx = reconcilers.StashOriginalConfig(ctx, w.config)
	ctx = reconcilers.StashResourceType(ctx, &fixture.Resource{})
	return reconcilers.StashOriginalResourceType(ctx, &fixture.Resource{})
}

type recorderOf struct{ *world }

func (r recorderOf) Event(_ runtime.Object, _, reason, message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, reason+": "+message)
}

func (r recorderOf) Eventf(obj runtime.Object, eventtype, reason, format string, args ...any) {
	r.Event(obj, eventtype, reason, fmt.Sprintf(format, args...))
}

func (r recorderOf) AnnotatedEventf(
	obj runtime.Object, _ map[string]string, eventtype, reason, format string, args ...any,
) {
	r.Eventf(obj, eventtype, reason, format, args...)
}

// bench is a handler with its events and a record of its calls.
type bench struct {
	*world
	*operator.WithEdge[*fixture.Resource]
	events predicate.Predicate
	// errs are the results of the next calls.
	errs  []error
	after time.Duration
	lines []string
}

func newBench(t testing.TB, given ...client.Object) *bench {
	b := &bench{world: newWorld(t, given...)}
	b.WithEdge = operator.AsSubReconciler[*fixture.Resource](b.reconciler())
	b.BelowController()
	return b
}

// reconciler records "Updated a 1>2" for a change of the resource with UID a from value 1 to 2.
func (b *bench) reconciler() *operator.TypedReconciler[*fixture.Resource] {
	return &operator.TypedReconciler[*fixture.Resource]{
		ReconcileFunc: func(
			ctx context.Context, req operator.TypedReconcileRequest[*fixture.Resource],
		) (operator.ReconcileResult, error) {
			line := fmt.Sprint(req.Action, " ", req.Object.UID, " ")
			if previous, ok := operator.PreviousFrom[*fixture.Resource](ctx); ok {
				line += previous.Spec.Fields["value"] + ">"
			}
			line += req.Object.Spec.Fields["value"]
			edge := operator.EdgeFrom(ctx)
			if edge.Attempt > 0 {
				line += fmt.Sprint(", attempt ", edge.Attempt)
			}
			if edge.InitialList {
				line += ", listed"
			}
			b.lines = append(b.lines, line)
			if len(b.errs) > 0 {
				err := b.errs[0]
				b.errs = b.errs[1:]
				return operator.ReconcileResult{}, err
			}
			return operator.ReconcileResult{RequeueAfter: b.after}, nil
		},
	}
}

func (b *bench) recorder() predicate.Predicate {
	if b.events == nil {
		b.events = b.Events(&fixture.Resource{})
	}
	return b.events
}

func (b *bench) appears(obj *fixture.Resource) { b.recorder().Create(event.CreateEvent{Object: obj}) }

func (b *bench) isListed(obj *fixture.Resource) {
	b.recorder().Create(event.CreateEvent{Object: obj, IsInInitialList: true})
}

func (b *bench) changes(old, new *fixture.Resource) {
	b.recorder().Update(event.UpdateEvent{ObjectOld: old, ObjectNew: new})
}
func (b *bench) resyncs(obj *fixture.Resource)       { b.changes(obj, obj) }
func (b *bench) vanishes(obj *fixture.Resource)      { b.recorder().Delete(event.DeleteEvent{Object: obj}) }
func (b *bench) absent() (reconcilers.Result, error) { return b.Absent(b.context(), testRequest) }
func (b *bench) see(obj *fixture.Resource) (reconcilers.Result, error) {
	return b.Reconcile(b.context(), obj.DeepCopy())
}

// handle is see for a handler that succeeds.
func (b *bench) handle(obj *fixture.Resource) {
	b.t.Helper()
	if _, err := b.see(obj); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) want(t testing.TB, lines ...string) {
	t.Helper()
	if diff := cmp.Diff(lines, b.lines); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	b.lines = nil
}

// equal fails the test unless both are equal.
func equal(t testing.TB, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// wantText fails the test unless the error has this text; "" expects no error.
func wantText(t testing.TB, want string, err error) {
	t.Helper()
	got := ""
	if err != nil {
		got = err.Error()
	}
	equal(t, "error", want, got)
}

// wantErr fails the test unless the error is, or wraps, all of these; an empty want expects no error.
func wantErr(t testing.TB, err error, want ...error) {
	t.Helper()
	if len(want) == 0 && err != nil || slices.ContainsFunc(want, func(w error) bool { return !errors.Is(err, w) }) {
		t.Errorf("error: %v, want %v", err, want)
	}
}
