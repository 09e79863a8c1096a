// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"trueup.dev/duck"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
	"trueup.dev/tracker"
)

// world is an in-memory API server, a config to access it, and a trace of all uses of that config: API calls, events
// and tracked references, in order, one per line.
type world struct {
	t      testing.TB
	Scheme *runtime.Scheme
	// Server accesses the objects without adding lines to the trace.
	Server client.WithWatch
	Config reconcilers.Config

	// Admit changes objects before the server stores them.
	Admit func(obj client.Object)
	// Unseen reports whether an object has not reached the cache yet.
	Unseen func(obj client.Object) bool
	// Fetched is called with each object that a Get of the client returns.
	Fetched func(obj client.Object)

	mu       sync.Mutex
	lines    []string
	failures []failure
	created  int
	deletes  []client.DeleteOptions
}

type failure struct {
	line string
	// nth is the number of the call that fails, starting at 1. 0 means that all calls fail.
	nth, seen int
	err       error
}

// ownerDataField is a cache index like users define them.
const ownerDataField = "data.owner"

func newWorld(t testing.TB, given ...client.Object) *world {
	return newWorldOn(t, clienttesting.NewObjectTracker, given...)
}

// newWorldOn is like newWorld with another store of the server. The store of newWorld does not support managed fields
// and server-side apply, because tracking managed fields takes a hundred times as long.
func newWorldOn(
	t testing.TB, remembers func(clienttesting.ObjectScheme, runtime.Decoder) clienttesting.ObjectTracker,
	given ...client.Object,
) *world {
	scheme := fixture.NewScheme()
	w := &world{t: t, Scheme: scheme}
	memory := remembers(scheme, serializer.NewCodecFactory(scheme).UniversalDecoder())
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjectTracker(memory).WithReturnManagedFields().
		WithObjects(given...)
	w.Server = builder.WithStatusSubresource(
		&fixture.Resource{}, &fixture.ResourceNilableStatus{}, &fixture.ResourceEmptyStatus{},
		&fixture.ResourceLegacyConditions{}, &fixture.ResourceLegacyDefault{}, &fixture.ResourceAdmissionDefault{},
		&fixture.ResourceObjectDefault{},
	).WithIndex(&corev1.ConfigMap{}, reconcilers.OwnerIndexField, reconcilers.ControllerUID).
		WithIndex(&corev1.ConfigMap{}, ownerDataField, func(obj client.Object) []string {
			return []string{obj.(*corev1.ConfigMap).Data["owner"]}
		}).
		WithIndex(&corev1.ConfigMap{}, "metadata.name", func(obj client.Object) []string {
			return []string{obj.GetName()}
		}).Build()
	recorded := interceptor.NewClient(w.Server, w.calls())
	w.Config = reconcilers.Config{
		Client:    duck.NewDuckAwareClientWrapper(recorded),
		APIReader: duck.NewDuckAwareAPIReaderWrapper(interceptor.NewClient(w.Server, w.liveCalls()), recorded),
		Recorder:  tracingRecorder{w},
		Tracker:   tracingTracker{Tracker: tracker.New(scheme, time.Hour), world: w},
	}
	return w
}

// Fail makes every call fail whose line in the trace starts with line.
func (w *world) Fail(line string, err error) *world {
	w.failures = append(w.failures, failure{line: line, err: err})
	return w
}

// FailNth makes the nth call fail whose line in the trace starts with line.
func (w *world) FailNth(line string, nth int, err error) {
	w.failures = append(w.failures, failure{line: line, nth: nth, err: err})
}

// Heal removes all injected failures.
func (w *world) Heal() { w.failures = nil }

// Trace returns the lines since the last call.
func (w *world) Trace() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	lines := w.lines
	w.lines = nil
	return lines
}

// Writes is like Trace without the calls that only read.
func (w *world) Writes() []string {
	return slices.DeleteFunc(w.Trace(), func(line string) bool {
		return strings.HasPrefix(line, "get ") || strings.HasPrefix(line, "list ") || strings.HasPrefix(line, "live ")
	})
}

// Count returns the number of lines since the last Trace that start with prefix.
func (w *world) Count(prefix string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	count := 0
	for _, line := range w.lines {
		if strings.HasPrefix(line, prefix) {
			count++
		}
	}
	return count
}

// stored returns the server's version of obj, or nil if it does not exist.
func stored[T client.Object](w *world, obj T) T {
	w.t.Helper()
	found := obj.DeepCopyObject().(T)
	err := w.Server.Get(context.Background(), client.ObjectKeyFromObject(obj), found)
	if apierrs.IsNotFound(err) {
		var none T
		return none
	}
	if err != nil {
		w.t.Fatalf("read back %T: %v", obj, err)
	}
	return found
}

// note adds a line to the trace and returns the failure injected for it.
func (w *world) note(format string, args ...any) error {
	line := fmt.Sprintf(format, args...)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, line)
	for i := range w.failures {
		failure := &w.failures[i]
		if !strings.HasPrefix(line, failure.line) {
			continue
		}
		failure.seen++
		if failure.nth == 0 || failure.nth == failure.seen {
			return failure.err
		}
	}
	return nil
}

// count returns a number that was not used before.
func (w *world) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.created++
	return w.created
}

func (w *world) kind(obj runtime.Object) string {
	gvk, err := apiutil.GVKForObject(obj, w.Scheme)
	if err != nil {
		return fmt.Sprintf("%T", obj)
	}
	return strings.TrimSuffix(gvk.Kind, "List")
}

func (w *world) calls() interceptor.Funcs {
	return interceptor.Funcs{
		Get: func(
			ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption,
		) error {
			if err := w.note("get %s %s", w.kind(obj), key); err != nil {
				return err
			}
			if err := c.Get(ctx, key, obj, opts...); err != nil {
				return err
			}
			if w.Unseen != nil && w.Unseen(obj) {
				return apierrs.NewNotFound(schema.GroupResource{Resource: w.kind(obj)}, key.Name)
			}
			if w.Fetched != nil {
				w.Fetched(obj)
			}
			return nil
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if err := w.note("list %s%s", w.kind(list), describeList(opts)); err != nil {
				return err
			}
			if err := c.List(ctx, list, opts...); err != nil {
				return err
			}
			return w.forgetUnseen(list)
		},
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if obj.GetName() == "" && obj.GetGenerateName() != "" {
				obj.SetName(fmt.Sprintf("%s%d", obj.GetGenerateName(), w.count()))
			}
			if err := w.note("create %s %s", w.kind(obj), client.ObjectKeyFromObject(obj)); err != nil {
				return err
			}
			return w.create(ctx, c, obj, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			if err := w.note("update %s %s", w.kind(obj), client.ObjectKeyFromObject(obj)); err != nil {
				return err
			}
			return w.update(ctx, c, obj, opts...)
		},
		Patch: func(
			ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption,
		) error {
			key := client.ObjectKeyFromObject(obj)
			if err := w.note("patch %s %s %s %s", w.kind(obj), key, patch.Type(), w.bytes(patch, obj)); err != nil {
				return err
			}
			return c.Patch(ctx, obj, patch, opts...)
		},
		Apply: func(
			ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption,
		) error {
			if err := w.note("apply %T", obj); err != nil {
				return err
			}
			return c.Apply(ctx, obj, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			w.mu.Lock()
			w.deletes = append(w.deletes, *(&client.DeleteOptions{}).ApplyOptions(opts))
			w.mu.Unlock()
			if err := w.note("delete %s %s", w.kind(obj), client.ObjectKeyFromObject(obj)); err != nil {
				return err
			}
			return c.Delete(ctx, obj, opts...)
		},
		SubResourceUpdate: func(
			ctx context.Context, c client.Client, sub string, obj client.Object, opts ...client.SubResourceUpdateOption,
		) error {
			if err := w.note("update %s/%s %s", w.kind(obj), sub, client.ObjectKeyFromObject(obj)); err != nil {
				return err
			}
			return c.SubResource(sub).Update(ctx, obj, opts...)
		},
		SubResourcePatch: func(
			ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch,
			opts ...client.SubResourcePatchOption,
		) error {
			key := client.ObjectKeyFromObject(obj)
			err := w.note("patch %s/%s %s %s %s", w.kind(obj), sub, key, patch.Type(), w.bytes(patch, obj))
			if err != nil {
				return err
			}
			return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
		},
	}
}

func (w *world) liveCalls() interceptor.Funcs {
	return interceptor.Funcs{
		Get: func(
			ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption,
		) error {
			if err := w.note("live get %s %s", w.kind(obj), key); err != nil {
				return err
			}
			return c.Get(ctx, key, obj, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if err := w.note("live list %s%s", w.kind(list), describeList(opts)); err != nil {
				return err
			}
			return c.List(ctx, list, opts...)
		},
	}
}

// create sets the fields that a server sets and the fake client does not.
func (w *world) create(ctx context.Context, c client.Client, obj client.Object, opts ...client.CreateOption) error {
	obj.SetUID(types.UID(fmt.Sprintf("uid-%d", w.count())))
	obj.SetCreationTimestamp(metav1.NewTime(time.Now().Truncate(time.Second)))
	if w.specOf(obj) != nil {
		obj.SetGeneration(1)
	}
	if w.Admit != nil {
		w.Admit(obj)
	}
	return c.Create(ctx, obj, opts...)
}

// update changes the generation and resource version only if the object changes, like a server.
func (w *world) update(ctx context.Context, c client.Client, obj client.Object, opts ...client.UpdateOption) error {
	before := obj.DeepCopyObject().(client.Object)
	if err := c.Get(ctx, client.ObjectKeyFromObject(obj), before); err != nil {
		return err
	}
	if w.Admit != nil {
		w.Admit(obj)
	}
	if !equality.Semantic.DeepEqual(w.specOf(before), w.specOf(obj)) {
		obj.SetGeneration(before.GetGeneration() + 1)
	}
	if equality.Semantic.DeepEqual(before, obj) {
		reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(before).Elem())
		return nil
	}
	return c.Update(ctx, obj, opts...)
}

func (w *world) specOf(obj client.Object) any {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		w.t.Fatalf("convert %T: %v", obj, err)
	}
	return content["spec"]
}

func (w *world) forgetUnseen(list client.ObjectList) error {
	if w.Unseen == nil {
		return nil
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return err
	}
	unseen := func(item runtime.Object) bool { return w.Unseen(item.(client.Object)) }
	return meta.SetList(list, slices.DeleteFunc(items, unseen))
}

func (w *world) bytes(patch client.Patch, obj client.Object) string {
	data, err := patch.Data(obj)
	if err != nil {
		w.t.Fatalf("patch of %T: %v", obj, err)
	}
	return string(data)
}

func describeList(opts []client.ListOption) string {
	o := (&client.ListOptions{}).ApplyOptions(opts)
	description := ""
	if o.Namespace != "" {
		description += " in " + o.Namespace
	}
	if o.LabelSelector != nil {
		description += " labels " + o.LabelSelector.String()
	}
	if o.FieldSelector != nil {
		// Options that come from a map have no fixed order.
		terms := strings.Split(o.FieldSelector.String(), ",")
		slices.Sort(terms)
		description += " fields " + strings.Join(terms, ",")
	}
	return description
}

// equal fails the test unless got equals want.
func equal[T any](t testing.TB, what string, want, got T) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("unexpected %s (-want +got):\n%s", what, diff)
	}
}

// tracingRecorder adds events to the trace of a world.
type tracingRecorder struct{ world *world }

func (r tracingRecorder) Event(obj runtime.Object, eventtype, reason, message string) {
	_ = r.world.note("event %s %s %s: %s", client.ObjectKeyFromObject(obj.(client.Object)), eventtype, reason, message)
}

func (r tracingRecorder) Eventf(obj runtime.Object, eventtype, reason, format string, args ...any) {
	r.Event(obj, eventtype, reason, fmt.Sprintf(format, args...))
}

func (r tracingRecorder) AnnotatedEventf(
	obj runtime.Object, _ map[string]string, eventtype, reason, format string, args ...any,
) {
	r.Eventf(obj, eventtype, reason, format, args...)
}

// tracingTracker adds tracked references to the trace of a world.
type tracingTracker struct {
	tracker.Tracker
	world *world
}

func (t tracingTracker) TrackReference(ref tracker.Reference, observer client.Object) error {
	what := ref.Name
	if ref.Selector != nil {
		what = "[" + ref.Selector.String() + "]"
	}
	if err := t.world.note(
		"track %s %s/%s for %s", ref.Kind, ref.Namespace, what, client.ObjectKeyFromObject(observer),
	); err != nil {
		return err
	}
	return t.Tracker.TrackReference(ref, observer)
}

func (t tracingTracker) TrackObject(ref, observer client.Object) error {
	err := t.world.note(
		"track %s %s for %s", t.world.kind(ref), client.ObjectKeyFromObject(ref), client.ObjectKeyFromObject(observer),
	)
	if err != nil {
		return err
	}
	return t.Tracker.TrackObject(ref, observer)
}

// logSink collects log lines.
type logSink struct {
	mu    sync.Mutex
	lines []string
}

// newLog returns a logger of the given verbosity and its output.
func newLog(verbosity int) (logr.Logger, *logSink) {
	sink := &logSink{}
	return funcr.New(func(prefix, args string) {
		sink.mu.Lock()
		defer sink.mu.Unlock()
		sink.lines = append(sink.lines, strings.TrimSpace(prefix+" "+args))
	}, funcr.Options{Verbosity: verbosity}), sink
}

func (s *logSink) all() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.lines, "\n")
}

// messages returns the text of each line.
func (s *logSink) messages() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	messages := []string{}
	for _, line := range s.lines {
		_, rest, _ := strings.Cut(line, `"msg"="`)
		message, _, _ := strings.Cut(rest, `"`)
		messages = append(messages, message)
	}
	return messages
}

// Context returns the context of subreconcilers below a root reconciler.
func (w *world) Context() context.Context {
	ctx := reconcilers.WithStash(context.Background())
	ctx = reconcilers.StashRequest(ctx, testRequest)
	ctx = reconcilers.StashConfig(ctx, w.Config)
	ctx = reconcilers.StashOriginalConfig(ctx, w.Config)
	ctx = reconcilers.StashResourceType(ctx, &fixture.Resource{})
	return reconcilers.StashOriginalResourceType(ctx, &fixture.Resource{})
}

var (
	testRequest = reconcilers.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "test"}}
	longAgo     = metav1.NewTime(time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC).Local())
	errTest     = errors.New("failure of the test")
	errQuiet    = fmt.Errorf("quiet failure of the test: %w", reconcilers.ErrQuiet)
)

// newResource returns the test resource as stored in the server.
func newResource(changes ...func(*fixture.Resource)) *fixture.Resource {
	r := &fixture.Resource{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "test", UID: "parent", Generation: 1, CreationTimestamp: longAgo, ResourceVersion: "999",
	}}
	for _, change := range changes {
		change(r)
	}
	return r
}

func finalizer(name string) func(*fixture.Resource) {
	return func(r *fixture.Resource) { r.Finalizers = append(r.Finalizers, name) }
}

// terminating marks a resource as being deleted.
func terminating(r *fixture.Resource) {
	r.DeletionTimestamp = &longAgo
}

// settled sets a status that needs no update.
func settled(r *fixture.Resource) {
	r.Status.ObservedGeneration = r.Generation
	r.Status.Conditions = []metav1.Condition{{
		Type: "Ready", Status: metav1.ConditionUnknown, Reason: "Initializing", LastTransitionTime: longAgo,
	}}
}

// newConfigMap returns a ConfigMap that the test resource controls, as stored in the server.
func newConfigMap(name string, changes ...func(*corev1.ConfigMap)) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, UID: types.UID("uid-of-" + name), CreationTimestamp: longAgo,
			ResourceVersion: "999",
			OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(newResource(), fixture.GroupVersion.WithKind("Resource")),
			},
		},
		Data: map[string]string{"key": "value"},
	}
	for _, change := range changes {
		change(cm)
	}
	return cm
}

// wanted returns a ConfigMap as a user writes it.
func wanted(name string, data ...string) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: map[string]string{"key": "value"},
	}
	for pair := range slices.Chunk(data, 2) {
		cm.Data[pair[0]] = pair[1]
	}
	return cm
}

func orphan(cm *corev1.ConfigMap) { cm.OwnerReferences = nil }

// deleting marks a ConfigMap as being deleted.
func deleting(cm *corev1.ConfigMap) {
	cm.DeletionTimestamp = &longAgo
	cm.Finalizers = append(cm.Finalizers, "hold.example.com/on")
}

func mergeData(current, desired *corev1.ConfigMap) {
	current.Labels = desired.Labels
	current.Data = desired.Data
}

// wantErr fails the test unless got is or wraps want.
func wantErr(t testing.TB, want, got error) {
	t.Helper()
	if want == nil && got != nil || want != nil && !errors.Is(got, want) {
		t.Errorf("unexpected error: want %v, got %v", want, got)
	}
}

// wantText fails the test unless the text of the error is want. "" means no error.
func wantText(t testing.TB, want string, got error) {
	t.Helper()
	text := ""
	if got != nil {
		text = got.Error()
	}
	equal(t, "error text", want, text)
}

func withLog(ctx context.Context, log logr.Logger) context.Context {
	return logr.NewContext(ctx, log)
}

// contains fails the test unless text contains part.
func contains(t testing.TB, text, part string) {
	t.Helper()
	if !strings.Contains(text, part) {
		t.Errorf("missing %q in:\n%s", part, text)
	}
}

// lacks fails the test if text contains part.
func lacks(t testing.TB, text, part string) {
	t.Helper()
	if strings.Contains(text, part) {
		t.Errorf("found %q in:\n%s", part, text)
	}
}
