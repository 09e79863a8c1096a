// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"reflect"
	"strings"
	"sync"
	"time"

	evanphx "github.com/evanphx/json-patch/v5"
	"github.com/go-logr/logr"
	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/recorder"

	"trueup.dev/internal/difference"
	"trueup.dev/internal/engine/guard"
	"trueup.dev/internal/engine/step"
	"trueup.dev/internal/objects/nilcheck"
)

// writer holds the values that are needed to write one object for one reconciled resource.
type writer struct {
	ctx      context.Context
	log      logr.Logger
	resource client.Object
	config   Config
	original Config
	how      handling
}

// newWriter returns the writer of an object manager.
func newWriter(ctx context.Context, name string, resource client.Object) writer {
	return writer{
		ctx:      ctx,
		log:      logr.FromContextOrDiscard(ctx).WithName(name),
		resource: resource,
		config:   RetrieveConfigOrDie(ctx),
		original: RetrieveOriginalConfigOrDie(ctx),
	}
}

// delete deletes an object. It returns nil if the object no longer exists.
func (w writer) delete(actual client.Object, opts ...client.DeleteOption) error {
	w.log.Info("deleting unwanted resource", "resource", identify(actual))
	// The preconditions protect a newer object of the same name.
	opts = append(preconditions(actual, w.how.unchanged), opts...)
	switch err := w.config.Delete(w.ctx, actual, opts...); {
	case apierrs.IsConflict(err) && w.how.unchanged:
		return fmt.Errorf("%w: %w", ErrQuiet, err) // repeated with the object as it is now
	case apierrs.IsNotFound(err), apierrs.IsConflict(err) && actual.GetUID() != "":
		w.log.V(1).Info("unwanted resource no longer exists", "resource", identify(actual))
	case err != nil:
		return w.failed(err, "unable to delete unwanted resource", "DeleteFailed", "delete", actual)
	default:
		w.succeeded("Deleted", actual)
	}
	return nil
}

func (w writer) succeeded(reason string, obj client.Object) {
	w.original.recorder().Eventf(w.resource, corev1.EventTypeNormal, reason, reason+" %s %q", typeName(obj), obj.GetName())
}

func (w writer) failed(err error, message, reason, verb string, obj client.Object) error {
	if !isSilent(w.ctx, err) && !handledOutside(w.ctx, err) {
		w.log.Error(err, message, "resource", identify(obj))
		w.original.recorder().Eventf(w.resource, corev1.EventTypeWarning, reason,
			"Failed to "+verb+" %s %q: %v", typeName(obj), obj.GetName(), err)
		step.About(w.ctx, err, identify(obj))
		step.Recorded(w.ctx, err)
	}
	return err
}

func (w writer) track(obj client.Object) {
	if err := w.config.Tracker.TrackObject(obj, w.resource); err != nil {
		logUntracked(w.ctx, err, obj)
		return
	}
	w.config.holdFor(scopeFrom(w.ctx), nil)
}

// preconditions returns the options to delete this object, and if unchanged is set, only in this version.
func preconditions(obj client.Object, unchanged bool) []client.DeleteOption {
	uid := obj.GetUID()
	if uid == "" {
		return nil
	}
	of := client.Preconditions{UID: &uid}
	if version := obj.GetResourceVersion(); unchanged && version != "" {
		of.ResourceVersion = &version
	}
	return []client.DeleteOption{of}
}

// owned returns the context of a request that creates or changes an object.
func (w writer) owned() context.Context {
	if !w.how.child {
		return w.ctx
	}
	return guard.WithFieldOwner(w.ctx, fieldOwner(w.ctx))
}

type handlesKey struct{}

// withHandler returns the context of an object manager whose caller handles some errors. They are neither logged nor
// recorded.
func withHandler(ctx context.Context, handles func(error) bool) context.Context {
	return context.WithValue(ctx, handlesKey{}, handles)
}

func handledOutside(ctx context.Context, err error) bool {
	handles, _ := ctx.Value(handlesKey{}).(func(error) bool)
	return handles != nil && handles(err)
}

// EventOptions select which events are recorded on reconciled objects. The zero value selects all.
type EventOptions struct {
	// DisableNormal drops events of type Normal, for example Created and StatusUpdated. Defaults to false.
	DisableNormal bool
	// DisableWarning drops events of type Warning, for example ReconcileFailed, HotLoop and FieldConflict. Defaults to
	// false.
	DisableWarning bool
	// Interval is the minimum time between two events of an object with the same type, reason and message. Earlier ones
	// are dropped. It applies to configs of [NewConfig]. Defaults to 0: all are recorded, and the recorder of client-go
	// merges equal ones and limits their rate.
	Interval time.Duration
}

// RecordEvent records an event about an object with the Recorder of the config, as far as Events selects it. eventType
// is Normal or Warning. The message is formatted as by [fmt.Sprintf]. RecordEvent does nothing without a Recorder. It
// is safe for concurrent use.
func (c Config) RecordEvent(obj runtime.Object, eventType, reason, format string, args ...any) {
	c.recorder().Eventf(obj, eventType, reason, format, args...)
}

// noEvents is a recorder that drops all events.
var noEvents record.EventRecorder = &record.FakeRecorder{}

// recorder returns the Recorder, limited to the events that are selected.
func (c Config) recorder() record.EventRecorder {
	switch {
	case c.Recorder == nil:
		return noEvents
	case c.Events == EventOptions{}:
		return c.Recorder
	}
	return &selectiveRecorder{c.Recorder, c.Events, c.recorded}
}

// selectiveRecorder drops events.
type selectiveRecorder struct {
	record.EventRecorder
	options  EventOptions
	recorded *recordedEvents // may be nil
}

func (r *selectiveRecorder) Event(obj runtime.Object, eventType, reason, message string) {
	if r.selects(obj, eventType, reason, message) {
		r.EventRecorder.Event(obj, eventType, reason, message)
	}
}

func (r *selectiveRecorder) Eventf(obj runtime.Object, eventType, reason, format string, args ...any) {
	if r.selects(obj, eventType, reason, fmt.Sprintf(format, args...)) {
		r.EventRecorder.Eventf(obj, eventType, reason, format, args...)
	}
}

func (r *selectiveRecorder) selects(obj runtime.Object, eventType, reason, message string) bool {
	switch {
	case eventType == corev1.EventTypeNormal && r.options.DisableNormal:
		return false
	case eventType == corev1.EventTypeWarning && r.options.DisableWarning:
		return false
	case r.options.Interval <= 0 || r.recorded == nil:
		return true
	}
	about, err := meta.Accessor(obj)
	if err != nil {
		return true
	}
	key := eventKey{
		kind: fmt.Sprintf("%T", obj), uid: about.GetUID(), eventType: eventType, reason: reason,
		message: maphash.String(messageSeed, message),
	}
	key.object.Namespace, key.object.Name = about.GetNamespace(), about.GetName()
	return r.recorded.add(key, time.Now(), r.options.Interval)
}

// validEvents changes events that the API server would refuse, which is only logged by klog.
type validEvents struct{ recorder.EventRecorder }

func (e validEvents) Eventf(
	regarding, related runtime.Object, eventType, reason, action, note string, args ...any,
) {
	note = truncate(fmt.Sprintf(note, args...))
	e.EventRecorder.Eventf(regarding, related, eventType, reason, cmp.Or(action, reason), "%s", note)
}

func (e validEvents) AnnotatedEventf(
	regarding, related runtime.Object, annotations map[string]string, eventType, reason, action, note string, args ...any,
) {
	note = truncate(fmt.Sprintf(note, args...))
	e.EventRecorder.AnnotatedEventf(
		regarding, related, annotations, eventType, reason, cmp.Or(action, reason), "%s", note,
	)
}

// maxRecordedEvents limits the events that are remembered for [EventOptions.Interval].
const maxRecordedEvents = 10_000

// recordedEvents remembers when events were recorded. It is safe for concurrent use.
type recordedEvents struct {
	mu   sync.Mutex
	last map[eventKey]time.Time
}

type eventKey struct {
	kind              string
	uid               types.UID
	object            types.NamespacedName
	eventType, reason string
	message           uint64 // its hash
}

var messageSeed = maphash.MakeSeed()

// add remembers an event, unless an equal one was recorded within the interval. It reports whether it did.
func (r *recordedEvents) add(key eventKey, now time.Time, interval time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if last, ok := r.last[key]; ok && now.Sub(last) < interval {
		return false
	}
	if r.last == nil {
		r.last = map[eventKey]time.Time{}
	}
	if len(r.last) >= maxRecordedEvents {
		for other, last := range r.last {
			if now.Sub(last) >= interval {
				delete(r.last, other)
			}
		}
		for other := range r.last {
			if len(r.last) < maxRecordedEvents {
				break
			}
			delete(r.last, other) // its next event is recorded early
		}
	}
	r.last[key] = now
	return true
}

// Objects may contain secrets that users do not expect in logs. Values are therefore logged only if a Sanitize function
// selects them, or at verbosity 1 if the object is not a Secret.

// identify returns the kind and name of an object for logs.
func identify(obj client.Object) string {
	if nilcheck.IsNilPointer(obj) {
		return "<none>"
	}
	name := obj.GetName()
	if name == "" && obj.GetGenerateName() != "" {
		name = obj.GetGenerateName() + "*"
	}
	if ns := obj.GetNamespace(); ns != "" {
		name = ns + "/" + name
	}
	return typeName(obj) + " " + name
}

// describe returns the value to log for an object that is about to be created.
func (r *UpdatingObjectManager[T]) describe(log logr.Logger, obj T) any {
	switch {
	case !log.Enabled():
		return nil
	case r.Sanitize != nil:
		return r.Sanitize(obj.DeepCopyObject().(T))
	case log.V(1).Enabled() && !isSecret(obj):
		return obj.DeepCopyObject()
	default:
		return identify(obj)
	}
}

// diff returns keys and values to log for an object that is about to be updated. If the defaults of its kind are
// unknown, it lists fields that only the current object has separately, because they may be defaults.
func (r *UpdatingObjectManager[T]) diff(log logr.Logger, current, desired T, defaultsKnown bool) []any {
	if !log.Enabled() {
		return nil
	}
	if r.Sanitize != nil {
		before, after := r.Sanitize(current.DeepCopyObject().(T)), r.Sanitize(desired.DeepCopyObject().(T))
		return []any{"diff", difference.Lines(difference.Between(before, after))}
	}
	all := difference.Between(current, desired)
	found, unset := all, []difference.Difference(nil)
	if !defaultsKnown && current.GetUID() != "" {
		unset, found = partition(found, func(d difference.Difference) bool { return d.Removed })
	}
	logged := []any{"diff", difference.Paths(found)}
	if log.V(1).Enabled() && !isSecret(current) {
		logged = []any{"diff", difference.Lines(all)}
	}
	if len(unset) > 0 {
		logged = append(logged, "possiblyDefaults", difference.Paths(unset))
	}
	return logged
}

// partition splits a list into the items for which belongs returns true and the others.
func partition[E any](all []E, belongs func(E) bool) (yes, no []E) {
	for _, e := range all {
		if belongs(e) {
			yes = append(yes, e)
		} else {
			no = append(no, e)
		}
	}
	return yes, no
}

// changes returns the difference between two values for logs: the changed paths, or at verbosity 1 the values.
func changes(log logr.Logger, before, after any) any {
	found := difference.Between(before, after)
	if log.V(1).Enabled() {
		return difference.Lines(found)
	}
	return difference.Paths(found)
}

// isSecret reports whether obj is a Secret, including unstructured Secrets and Go types derived from Secret.
func isSecret(obj client.Object) bool {
	return typeName(obj) == "Secret" || strings.Contains(reflect.TypeOf(obj).String(), "Secret")
}

// Patch is the difference between two versions of an object, as a JSON patch (RFC 6902).
type Patch struct {
	generation int64
	operations []byte
}

// NewPatch returns the patch that changes base to update.
func NewPatch(base, update client.Object) (*Patch, error) {
	operations, err := jsonPatch(base, update)
	if err != nil {
		return nil, err
	}
	return &Patch{generation: base.GetGeneration(), operations: operations}, nil
}

// Apply changes rebase in place. It returns [PatchGenerationMismatch] if the generation of rebase differs from the
// generation of the base of the patch. If the patched document cannot be decoded, rebase contains only the fields
// before the first error.
func (p *Patch) Apply(rebase client.Object) error {
	if rebase.GetGeneration() != p.generation {
		return PatchGenerationMismatch
	}
	return applyJSONPatch(p.operations, rebase)
}

func jsonPatch(base, update any) ([]byte, error) {
	baseBytes, err := json.Marshal(base)
	if err != nil {
		return nil, err
	}
	updateBytes, err := json.Marshal(update)
	if err != nil {
		return nil, err
	}
	operations, err := jsonpatch.CreatePatch(baseBytes, updateBytes)
	if err != nil {
		return nil, err
	}
	return json.Marshal(operations)
}

func applyJSONPatch(operations []byte, obj client.Object) error {
	patch, err := evanphx.DecodePatch(operations)
	if err != nil {
		return err
	}
	before, err := json.Marshal(obj)
	if err != nil {
		return err
	}
	after, err := patch.Apply(before)
	if err != nil {
		return err
	}
	return replaceWith(after, obj)
}

// replaceWith decodes the document into obj. It clears obj first, because decoding keeps fields that the document does
// not have.
func replaceWith(document []byte, obj client.Object) error {
	reflect.ValueOf(obj).Elem().SetZero()
	return json.Unmarshal(document, obj)
}
