// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/defaults"
	"trueup.dev/internal/difference"
	"trueup.dev/internal/engine/ownership"
	"trueup.dev/observe"
)

// ReasonFieldsKept is the reason of a [FieldsKeptError] among [ChildReconciler].ReflectedChildErrorReasons.
const ReasonFieldsKept metav1.StatusReason = "FieldsKept"

// FieldsKeptError is the error of an [UpdatingObjectManager] or an [ApplyingObjectManager] if the API server accepts an
// update and none of the requested changes: a webhook keeps the old values. For a new object it would store the
// requested values.
type FieldsKeptError struct {
	// Object is the kind, the namespace and the name of the object.
	Object string
	// Fields are the paths of the fields that were to be changed.
	Fields []string
}

// Error names the fields.
func (e *FieldsKeptError) Error() string {
	return fmt.Sprintf("the API server accepted the update of %s and kept the old values, a webhook may do this: %s",
		e.Object, strings.Join(e.Fields, ", "))
}

// Status returns the error with [ReasonFieldsKept], by which it is reflected on the parent of a child.
func (e *FieldsKeptError) Status() metav1.Status {
	return metav1.Status{Status: metav1.StatusFailure, Reason: ReasonFieldsKept, Message: e.Error()}
}

// serverFields are the fields that the API server sets, or that an update does not change.
var serverFields = []string{
	"status", "metadata.creationTimestamp", "metadata.generation", "metadata.managedFields", "metadata.resourceVersion",
	"metadata.selfLink", "metadata.uid",
}

// effect is the result of the changes that an update requested.
type effect struct {
	// kept are the fields that were to get a value and have the old one. It is empty if one of them has changed.
	kept []string
	// rewritten are the fields that were to be removed and got another value.
	rewritten []string
}

// effectOf compares an object before an update, as it was sent, and as it was stored.
func effectOf(before, sent, stored any) effect {
	changed := difference.Between(before, stored)
	has := func(path string) bool {
		return slices.ContainsFunc(changed, func(d difference.Difference) bool {
			return isBelow(d.Field(), path) || isBelow(path, d.Field())
		})
	}
	found, took := effect{}, false
	for _, d := range difference.Between(before, sent) {
		path := d.Field()
		switch {
		case slices.ContainsFunc(serverFields, func(field string) bool { return isBelow(path, field) }):
		case !d.Removed:
			took = took || has(path)
			found.kept = append(found.kept, path)
		case slices.ContainsFunc(changed, func(c difference.Difference) bool { return c.Field() == path && !c.Removed }):
			found.rewritten = append(found.rewritten, path)
		}
	}
	if took {
		found.kept = nil
	}
	return found
}

// judge decides about an update that the API server has accepted. It returns a [FieldsKeptError] if the server kept all
// old values and would not do so for a new object. If it stores other values than requested for a new object, too, the
// update is done, and limited reports whether it is tried again after some time.
func (r *UpdatingObjectManager[T]) judge(
	ctx context.Context, w writer, actual, sent, stored, desired T,
) (limited bool, err error) {
	found := effectOf(actual, sent, stored)
	if len(found.rewritten) > 0 {
		w.warn("FieldsRewritten", stored, "The API server sets fields of %s to another value with each update. "+
			"If MergeBeforeUpdate keeps them, there are fewer updates: %s", found.rewritten)
	}
	if len(found.kept) == 0 {
		return false, nil
	}
	if r.admission.wasKept(actual.GetUID(), desired) {
		return true, nil
	}
	asNew := r.asNew(ctx, w, desired)
	differs := asNew != nil && slices.ContainsFunc(difference.Between(sent, asNew), func(d difference.Difference) bool {
		return slices.ContainsFunc(found.kept, func(path string) bool { return isBelow(d.Field(), path) })
	})
	return w.judgeKept(actual, stored, found.kept, asNew != nil, differs)
}

// judgeKept decides about a write when the API server has kept some fields. isKnown reports whether a dry run has
// shown what it would store for a new object, and differs whether it would keep one of the fields then, too.
func (w writer) judgeKept(
	actual, stored client.Object, kept []string, isKnown, differs bool,
) (limited bool, err error) {
	if isKnown && !differs {
		return false, w.fieldsKept(actual, kept)
	}
	w.keptForNew(stored, kept, isKnown)
	return true, nil
}

// fieldsKept returns the error for an update none of whose changes took effect.
func (w writer) fieldsKept(actual client.Object, fields []string) error {
	err := &FieldsKeptError{Object: identify(actual), Fields: fields}
	if gvk, kindErr := w.config.GroupVersionKindFor(actual); kindErr == nil {
		observe.ReportRefused(w.ctx, gvk.GroupKind(), client.ObjectKeyFromObject(actual), err)
	}
	return err
}

// keptForNew warns about values that the API server also stores for new objects. isKnown reports whether a dry run has
// shown that.
func (w writer) keptForNew(stored client.Object, fields []string, isKnown bool) {
	text := "The API server stores other values of %s than requested, also for new objects: %s"
	if !isKnown {
		text = "The API server stores other values of %s than requested, the dry run of a creation failed: %s"
	}
	w.warn("FieldsKept", stored, text, fields)
}

// judge decides about an apply that the API server has accepted, as [UpdatingObjectManager.judge] does about an update.
// before and after are the differences of the object from the document.
func (a application[T]) judge(
	actual, stored T, document map[string]any, before, after []ownership.Difference,
) (limited bool, err error) {
	kept := ownership.Kept(before, after)
	if len(kept) == 0 {
		return false, nil
	}
	if a.manager.memory.wasKept(stored, a.desired) {
		return true, nil
	}
	asNew, ok := a.asNew(document)
	differs := slices.ContainsFunc(asNew, func(d ownership.Difference) bool {
		return slices.ContainsFunc(kept, func(path string) bool {
			return isAtOrBelow(d.Path, path) || isAtOrBelow(path, d.Path)
		})
	})
	return a.judgeKept(actual, stored, kept, ok, differs)
}

// asNew returns how the object that the API server would store differs from the document if it were new, if the server
// says so.
func (a application[T]) asNew(document map[string]any) (differences []ownership.Difference, ok bool) {
	request := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(document)}
	const suffix = 5 // of a name that no object has
	name := request.GetName()
	request.SetName(name[:min(len(name), 63-suffix-1)] + "-" + rand.String(suffix))
	if err := a.config.Apply(a.ctx, client.ApplyConfigurationFromUnstructured(request), client.FieldOwner(a.owner),
		client.DryRunAll); err != nil {
		a.log.Info("unable to determine what the API server would store for a new object", "reason", err.Error())
		return nil, false
	}
	entry, _ := ownership.EntryOf(request.GetManagedFields(), a.owner)
	return ownership.Compare(document, request.Object, ownership.FieldsOf(entry)).Differences, true
}

// asNew returns what the API server would store if the object were new, or nil if it does not say so.
func (r *UpdatingObjectManager[T]) asNew(ctx context.Context, w writer, desired T) client.Object {
	created := desired.DeepCopyObject().(T)
	const suffix = 10 // of a generated name, and the separator
	if name := created.GetName(); name != "" {
		created.SetGenerateName(name[:min(len(name), 63-suffix)] + "-")
		created.SetName("")
	}
	created.SetResourceVersion("")
	created.SetUID("")
	if err := w.config.Create(ctx, created, client.DryRunAll); err != nil {
		w.log.Info("unable to determine what the API server would store for a new object", "reason", err.Error())
		return nil
	}
	return created
}

// warn logs and records what the API server did with fields of an object.
func (w writer) warn(reason string, obj client.Object, text string, fields []string) {
	message := fmt.Sprintf(text, identify(obj), strings.Join(fields, ", "))
	w.log.Info(message)
	w.original.recorder().Event(w.resource, corev1.EventTypeWarning, reason, truncate(message))
}

// admissionMemory remembers, for each written object, the object that was requested and the object after the API server
// applied its defaults and called its webhooks. While the request stays the same, the actual object is compared with
// the latter.
//
// Entries are keyed by the requested object, not by a generation: a fresh desired object has no generation, and the
// server may admit a different object differently.
type admissionMemory[T client.Object] struct {
	remembered[admitted[T]]
}

type admitted[T client.Object] struct {
	requested T
	result    T
	// until is the time until which the result is expected. It is zero if that does not end.
	until time.Time
}

func (a admitted[T]) isExpected() bool { return a.until.IsZero() || time.Now().Before(a.until) }

// keptFor is how long values are expected that the API server kept instead of those that were requested. Afterwards
// they are requested again: the webhook that kept them may be gone.
const keptFor = time.Hour

// expected returns a copy of the object that the server is expected to store for desired. Without an entry it returns a
// copy of desired. The caller merges the result into an object that a later write changes, so it must be a copy.
func (m *admissionMemory[T]) expected(uid types.UID, desired T) T {
	known, ok := m.get(uid, func(a admitted[T]) bool { return a.isExpected() && difference.Equal(a.requested, desired) })
	if !ok {
		return desired.DeepCopyObject().(T)
	}
	return known.result.DeepCopyObject().(T)
}

// learn records that the server stored requested as stored. It keeps requested, so the caller must not change it. merge
// copies the managed fields of an object.
func (m *admissionMemory[T]) learn(requested, stored T, merge func(current, desired T)) error {
	remerged := stored.DeepCopyObject().(T)
	merge(remerged, requested.DeepCopyObject().(T))
	// A patch with the server's changes to the managed fields can be applied to the requested object again.
	operations, err := jsonPatch(remerged, stored)
	if err != nil {
		return err
	}
	if string(operations) == "[]" || string(operations) == "null" {
		m.forget(stored.GetUID())
		return nil
	}
	result := requested.DeepCopyObject().(T)
	if err := applyJSONPatch(operations, result); err != nil {
		m.forget(stored.GetUID())
		return err
	}
	// A merge may reorder the items of a list. The entry is valid only if merging it results in the stored object.
	remerged = stored.DeepCopyObject().(T)
	merge(remerged, result.DeepCopyObject().(T))
	if !difference.Equal(remerged, stored) {
		m.forget(stored.GetUID())
		return errors.New("changes by the server cannot be distinguished from changes by the merge")
	}
	m.put(stored.GetUID(), admitted[T]{requested: requested, result: result})
	return nil
}

// limit makes the entry of an object expire, see [keptFor].
func (m *admissionMemory[T]) limit(uid types.UID) {
	if found, ok := m.store().Get(uid); ok {
		entry := found.(rememberedValue[admitted[T]]).value
		entry.until = time.Now().Add(keptFor)
		m.putFor(uid, entry, stateTTL)
	}
}

// wasKept reports whether the API server kept values of an object when the same object was requested before.
func (m *admissionMemory[T]) wasKept(uid types.UID, requested T) bool {
	found, ok := m.store().Get(uid)
	if !ok {
		return false
	}
	entry := found.(rememberedValue[admitted[T]]).value
	return !entry.until.IsZero() && difference.Equal(entry.requested, requested)
}

// comparer compares objects of a kind before they are written. The zero value is ready to use. It is safe for
// concurrent use.
type comparer[T client.Object] struct {
	schemas  defaults.Schemas
	carriers carriers
}

// copyToCompare returns a copy that shares its managed fields. They are large and are never changed in place.
func (c *comparer[T]) copyToCompare(obj T) T {
	value := reflect.ValueOf(obj).Elem()
	if _, ok := any(obj).(runtime.Unstructured); ok || value.Kind() != reflect.Struct || len(obj.GetManagedFields()) == 0 {
		return obj.DeepCopyObject().(T)
	}
	copied := c.carriers.copyPart(obj, func(carrier reflect.Value) {
		carrier.Set(value)
		carrier.Addr().Interface().(client.Object).SetManagedFields(nil)
	})
	copied.SetManagedFields(obj.GetManagedFields())
	return copied.(T)
}

// ownManagedFields replaces the managed fields of a copy that shares them. A client decodes the response of a write
// into the object that it sent, and reuses the memory of its managed fields.
func ownManagedFields(obj client.Object) {
	fields := slices.Clone(obj.GetManagedFields())
	for i := range fields {
		fields[i].FieldsV1 = fields[i].FieldsV1.DeepCopy()
		fields[i].Time = fields[i].Time.DeepCopy()
	}
	obj.SetManagedFields(fields)
}

// withDefaults returns a copy of current, which is about to be written, with the defaults of the API server. It reports
// whether all defaults are known. An object without a UID was not read from an API server but, for example, from a fake
// client: its defaults are unknown. withDefaults does not change its arguments.
func (c *comparer[T]) withDefaults(w writer, current, actual T) (filled T, known bool) {
	if actual.GetUID() == "" {
		return current, false
	}
	filled = c.copyToCompare(current)
	if defaults.Update(filled, actual) {
		defaults.KeepUnset(filled, current, actual)
		return filled, true
	}
	mayExplain := mayBeDefaults(difference.Between(actual, current))
	byServer, known := withSchemaDefaults(w.ctx, w.log, w.config, &c.schemas, current, mayExplain)
	if !known {
		return current, false
	}
	byServer.SetManagedFields(actual.GetManagedFields())
	return byServer.(T), true
}

// withSchemaDefaults returns a copy of a custom resource with the defaults of its schema, and reports whether the
// schema is known. It reads the schema from the server only if defaults may explain all differences to the stored
// object.
func withSchemaDefaults(
	ctx context.Context, log logr.Logger, config Config, schemas *defaults.Schemas, obj client.Object, mayExplain bool,
) (filled client.Object, known bool) {
	if config.Client == nil || config.Discovery == nil {
		return nil, false
	}
	kind, err := config.GroupVersionKindFor(obj)
	if err != nil {
		return nil, false
	}
	schema, known, fresh, err := schemas.For(config.Discovery, kind, !mayExplain)
	if err != nil && fresh {
		config.Hub().Report(ctx, &observe.AttemptFailed{
			Attempt: observe.ReadSchema, Kind: kind.GroupKind(), Err: err,
		})
		log.Info("unable to read the defaults of a kind, redundant writes are possible",
			"kind", kind.GroupKind().String(), "reason", err.Error())
	}
	if err != nil || !known {
		return nil, false
	}
	if filled, err = filledIn(obj, schema); err != nil {
		return nil, false
	}
	return filled, true
}

// filledIn returns a copy of an object with the defaults of a schema.
func filledIn(obj client.Object, schema *defaults.Schema) (client.Object, error) {
	if u, ok := obj.(runtime.Unstructured); ok {
		copied := u.DeepCopyObject().(runtime.Unstructured)
		schema.Fill(copied.UnstructuredContent())
		return copied.(client.Object), nil
	}
	data, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	content := map[string]any{}
	if err := utiljson.Unmarshal(data, &content); err != nil {
		return nil, err
	}
	schema.Fill(content)
	if data, err = json.Marshal(content); err != nil {
		return nil, err
	}
	filled := reflect.New(reflect.TypeOf(obj).Elem()).Interface().(client.Object)
	return filled, json.Unmarshal(data, filled)
}

// admissionMemoryTTL is how long a remembered value is kept after its last use.
const admissionMemoryTTL = time.Hour

// remembered keeps a value for each UID of an object. The zero value is ready to use. It is safe for concurrent use.
type remembered[V any] struct {
	once sync.Once
	// seen maps UIDs of objects to rememberedValue values.
	seen *cache.Expiring
}

type rememberedValue[V any] struct {
	value V
	renew time.Time
}

func (r *remembered[V]) store() *cache.Expiring {
	r.once.Do(func() { r.seen = cache.NewExpiring() })
	return r.seen
}

// get returns the value of an object if it is valid. That counts as a use, but the time is only renewed after half of
// it.
func (r *remembered[V]) get(uid types.UID, isValid func(V) bool) (value V, ok bool) {
	found, ok := r.store().Get(uid)
	if !ok {
		return value, false
	}
	known := found.(rememberedValue[V])
	if !isValid(known.value) {
		return value, false
	}
	if time.Now().After(known.renew) {
		r.put(uid, known.value)
	}
	return known.value, true
}

func (r *remembered[V]) put(uid types.UID, value V) {
	r.putFor(uid, value, admissionMemoryTTL)
}

func (r *remembered[V]) putFor(uid types.UID, value V, ttl time.Duration) {
	r.store().Set(uid, rememberedValue[V]{value, time.Now().Add(ttl / 2)}, ttl)
}

func (r *remembered[V]) forget(uid types.UID) {
	r.store().Delete(uid)
}
