// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
	"trueup.dev/tracker"
)

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

// Context returns the context of sub reconcilers below a root reconciler.
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
