// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/defaults"
	"trueup.dev/internal/difference"
	"trueup.dev/internal/engine/observation"
	"trueup.dev/internal/engine/step"
	"trueup.dev/internal/objects/conditions"
	"trueup.dev/internal/objects/empty"
	"trueup.dev/internal/objects/objectstatus"
	"trueup.dev/internal/objects/servedstatus"
	"trueup.dev/observe"
)

// statusType describes the status of resources of one Go type. It is computed once.
type statusType struct {
	*objectstatus.Fields

	unstructured bool
	// initialize reports whether the status has an InitializeConditions method, and withContext whether the method
	// takes a context.
	initialize  bool
	withContext bool

	carriers carriers
}

var contextType = reflect.TypeFor[context.Context]()

func newStatusType(obj client.Object) *statusType {
	s := &statusType{Fields: objectstatus.Of(obj)}
	_, s.unstructured = obj.(*unstructured.Unstructured)
	if s.Type == nil {
		return s
	}
	if method, ok := reflect.PointerTo(s.Type).MethodByName("InitializeConditions"); ok && method.Type.NumOut() == 0 {
		switch in := method.Type.NumIn(); {
		case in == 1:
			s.initialize = true
		case in == 2 && method.Type.In(1) == contextType:
			s.initialize, s.withContext = true, true
		}
	}
	return s
}

// initializeConditions calls the InitializeConditions method of the status.
func (s *statusType) initializeConditions(ctx context.Context, obj client.Object) {
	status := s.Value(obj)
	if !s.initialize || !status.IsValid() {
		return
	}
	switch status := status.Addr().Interface().(type) {
	case interface{ InitializeConditions(context.Context) }:
		status.InitializeConditions(ctx)
	case interface{ InitializeConditions() }:
		status.InitializeConditions()
	}
}

// observeGeneration copies the generation of the resource to its status.
func (s *statusType) observeGeneration(obj client.Object) {
	if observed := s.ObservedGeneration(obj); observed != nil {
		*observed = obj.GetGeneration()
	}
}

// snapshot returns an object of the Go type of obj with only a copy of the status. If the status is not a known struct,
// it returns a copy of obj.
func (s *statusType) snapshot(obj client.Object) client.Object {
	status := s.Value(obj)
	if !status.IsValid() || s.IsPointer {
		return obj.DeepCopyObject().(client.Object)
	}
	return s.carriers.copyPart(obj, func(carrier reflect.Value) { carrier.FieldByIndex(s.Index).Set(status) })
}

// equal reports whether the status of two versions of a resource is equal.
func (s *statusType) equal(a, b client.Object) bool {
	return difference.Equal(s.of(a), s.of(b))
}

// of returns the status of obj for comparisons and logs, or nil if obj has no status.
func (s *statusType) of(obj client.Object) any {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return u.Object["status"]
	}
	if status := s.Value(obj); status.IsValid() {
		return status.Addr().Interface()
	}
	return nil
}

// conditionsOf returns the conditions of a resource, or nil if its status has no conditions of the expected type.
func (s *statusType) conditionsOf(obj client.Object) []metav1.Condition {
	if conditions := s.Conditions(obj); conditions != nil {
		return *conditions
	}
	return nil
}

// changeConditions changes the conditions of a resource. It does nothing if its status has no conditions of the
// expected type.
func (s *statusType) changeConditions(obj client.Object, change func(conditions *[]metav1.Condition)) {
	if conditions := s.Conditions(obj); conditions != nil {
		change(conditions)
	}
}

func conditionOf(conditions []metav1.Condition, conditionType string) *metav1.Condition {
	for i := range conditions {
		if conditions[i].Type == conditionType {
			return &conditions[i]
		}
	}
	return nil
}

// withGeneration returns a context in which the apis package sets the observedGeneration of the conditions of obj.
func (s *statusType) withGeneration(
	ctx context.Context, obj client.Object,
) (context.Context, *observation.Observation) {
	status := s.Value(obj)
	if !s.HasConditions() || !status.IsValid() || obj.GetGeneration() == 0 {
		return ctx, nil
	}
	return observation.WithGeneration(ctx, obj.GetGeneration(), status)
}

// observeConditions sets the observedGeneration of the conditions of obj that are new or changed since original, and of
// conditions whose observedGeneration was cleared. If all reconcilers have run, it also updates the conditions that
// InitializeConditions manages. It does not change an observedGeneration that the user set, nor the conditions of other
// writers.
func (s *statusType) observeConditions(obj, original client.Object, observation *observation.Observation, all bool) {
	generation := observation.Generation()
	if generation == 0 {
		return
	}
	conditions, originals := s.conditionsOf(obj), s.conditionsOf(original)
	for i := range conditions {
		c, old := &conditions[i], conditionOf(originals, conditions[i].Type)
		before := metav1.Condition{}
		if old != nil {
			before = *old
		}
		changed := old == nil || c.Status != before.Status || c.Reason != before.Reason || c.Message != before.Message
		switch observed := c.ObservedGeneration; {
		case observed == 0 && (changed || before.ObservedGeneration != 0):
			c.ObservedGeneration = generation
		case changed && observed == before.ObservedGeneration && observed < generation && !observation.IsSummary(c.Type):
			c.ObservedGeneration = generation // the condition was changed in place
		case all && 0 < observed && observed < generation && observation.IsManaged(c.Type):
			c.ObservedGeneration = generation
		}
	}
}

// keepTransitionTimes restores the transition time of each condition of obj whose status is the same as in original.
// The transition time is the time of the last change of the status, not of the reason or message.
func (s *statusType) keepTransitionTimes(obj, original client.Object) {
	conditions, originals := s.conditionsOf(obj), s.conditionsOf(original)
	for i := range conditions {
		if old := conditionOf(originals, conditions[i].Type); old != nil && old.Status == conditions[i].Status {
			conditions[i].LastTransitionTime = old.LastTransitionTime
		}
	}
}

// admittedStatuses remembers how the API server changes a status that is written: it sets the defaults of the schema
// and drops unknown fields. A status that would be stored as the current status need not be written.
type admittedStatuses struct {
	// remembered has no entry for a status that is stored unchanged.
	remembered[admittedStatus]
	schemas defaults.Schemas
}

// admittedStatus holds snapshots, see [statusType.snapshot].
type admittedStatus struct{ requested, stored client.Object }

// isStored reports whether the API server would store the status of obj as the status of stored. An object without a
// UID was not read from an API server.
func (a *admittedStatuses) isStored(
	ctx context.Context, config Config, status *statusType, obj, stored client.Object,
) bool {
	uid := obj.GetUID()
	if uid == "" {
		return false
	}
	if known, ok := a.get(uid, func(known admittedStatus) bool {
		return status.equal(known.requested, obj) && status.equal(known.stored, stored)
	}); ok {
		a.put(uid, known)
		return true
	}
	if !mayBeDefaults(difference.Between(status.of(stored), status.of(obj))) {
		return false
	}
	log := logr.FromContextOrDiscard(ctx)
	filled, known := withSchemaDefaults(ctx, log, config, &a.schemas, obj, true)
	if !known || !status.equal(filled, stored) {
		return false
	}
	a.put(uid, admittedStatus{requested: status.snapshot(obj), stored: status.snapshot(stored)})
	log.V(1).Info("status is in sync with the defaults of the API server, no update required")
	return true
}

// learn records that the status of requested was stored as the status of stored.
func (a *admittedStatuses) learn(status *statusType, requested, stored client.Object) {
	switch uid := stored.GetUID(); {
	case uid == "":
	case status.equal(requested, stored):
		a.forget(uid)
	default:
		a.put(uid, admittedStatus{requested: requested, stored: status.snapshot(stored)})
	}
}

// mayBeDefaults reports whether every difference is a field that only the stored object has.
func mayBeDefaults(found []difference.Difference) bool {
	for _, d := range found {
		if !d.Removed {
			return false
		}
	}
	return true
}

// mendConditions makes the conditions of a resource valid: the API server refuses the whole status for one that is not.
func (s *statusType) mendConditions(obj client.Object) {
	s.changeConditions(obj, func(list *[]metav1.Condition) {
		for i, c := range *list {
			(*list)[i] = conditions.Mend(c)
		}
	})
}

// without returns a copy of a resource whose status has the original value of each field that the API server refused,
// and the names of these fields. It returns no names if the refusal is about the status as a whole, or about something
// else.
func (s *statusType) without(refusal error, obj, original client.Object) (client.Object, []string, error) {
	content, err := contentOf(obj)
	if err != nil {
		return nil, nil, err
	}
	before, err := contentOf(original)
	if err != nil {
		return nil, nil, err
	}
	status, _ := content["status"].(map[string]any)
	stored, _ := before["status"].(map[string]any)
	names := refusedFields(refusal)
	if isTooLarge(refusal) {
		names = largeFields(status, stored)
	}
	// Restore conditions from the last to the first, because their indexes change.
	slices.SortFunc(names, func(a, b refusedField) int { return b.index - a.index })
	texts := []string{}
	for _, name := range names {
		if text := name.restore(status, stored); text != "" && !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	if len(texts) == 0 {
		return nil, nil, nil
	}
	slices.Sort(texts)
	reduced := empty.Like(obj)
	return reduced, texts, runtime.DefaultUnstructuredConverter.FromUnstructured(content, reduced)
}

func contentOf(obj client.Object) (map[string]any, error) {
	if u, ok := obj.(runtime.Unstructured); ok {
		obj, ok := u.DeepCopyObject().(runtime.Unstructured)
		if !ok {
			return nil, fmt.Errorf("a copy of %T is not of the same type", u)
		}
		return obj.UnstructuredContent(), nil
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
}

// refusedField is a field of a status, or a condition, that the API server refused.
type refusedField struct {
	name string
	// index is the index of a condition, or -1.
	index int
}

// refusedFields returns the fields of the status that an Invalid error names, for example conditions and 1 for
// status.conditions[1].reason.
func refusedFields(refusal error) []refusedField {
	status := apierrs.APIStatus(nil)
	if !errors.As(refusal, &status) || status.Status().Details == nil {
		return nil
	}
	fields := []refusedField{}
	for _, cause := range status.Status().Details.Causes {
		path, ok := strings.CutPrefix(cause.Field, "status.")
		if !ok {
			continue
		}
		name, _, _ := strings.Cut(path, ".")
		field := refusedField{name: name, index: -1}
		if at := strings.IndexByte(name, '['); at >= 0 {
			field.name = name[:at]
			if index, err := strconv.Atoi(strings.TrimSuffix(name[at+1:], "]")); err == nil && field.name == "conditions" {
				field.index = index
			}
		}
		if !slices.Contains(fields, field) {
			fields = append(fields, field)
		}
	}
	return fields
}

// largeFields returns the changed fields of a status that may be too large: all but the conditions and the observed
// generation.
func largeFields(status, stored map[string]any) []refusedField {
	const small = 1024
	fields := []refusedField{}
	for name, value := range status {
		encoded, err := json.Marshal(value)
		if name != "conditions" && err == nil && len(encoded) > small && !reflect.DeepEqual(value, stored[name]) {
			fields = append(fields, refusedField{name, -1})
		}
	}
	return fields
}

// restore sets the field of a status to the stored value, and returns its name, or "" if it has that value.
func (f refusedField) restore(status, stored map[string]any) string {
	if f.index < 0 {
		before, ok := stored[f.name]
		if reflect.DeepEqual(status[f.name], before) {
			return ""
		}
		if delete(status, f.name); ok {
			status[f.name] = before
		}
		return "status." + f.name
	}
	list, _ := status[f.name].([]any)
	if f.index >= len(list) {
		return ""
	}
	refused, _ := list[f.index].(map[string]any)
	before, _ := stored[f.name].([]any)
	at := slices.IndexFunc(before, func(c any) bool {
		other, _ := c.(map[string]any)
		return other["type"] == refused["type"]
	})
	if at < 0 {
		status[f.name] = slices.Delete(list, f.index, f.index+1)
	} else {
		list[f.index] = before[at]
	}
	return fmt.Sprintf("status.conditions[type=%v]", refused["type"])
}

// errNoStatus is the cause of an error about a kind whose status cannot be written.
var errNoStatus = fmt.Errorf("the object exists, but its status does not: %w", servedstatus.ErrMissing)

// explainNotFound tells why a status is not found. The error is the same if the resource was deleted, and if its kind
// has no status subresource. It returns nil for a resource that was deleted.
func (r *ResourceReconciler[T]) explainNotFound(ctx context.Context, resource T, notFound error) error {
	reader := client.Reader(r.Config.Client)
	if r.Config.APIReader != nil {
		reader = r.Config.APIReader
	}
	live := empty.Like(resource)
	switch err := reader.Get(ctx, client.ObjectKeyFromObject(resource), live); {
	case apierrs.IsNotFound(err), err == nil && live.GetUID() != resource.GetUID():
		return nil
	case err != nil:
		return notFound
	}
	return fmt.Errorf("%w: %w", notFound, errNoStatus)
}

// unwritten finds fields of a reconciled resource, other than its status, that reconcilers change in memory only: the
// changes are lost, and nothing else would show it. The zero value is ready to use. It is safe for concurrent use.
type unwritten struct {
	compared seldom
	// logged has the paths that were logged.
	logged sync.Map
}

// before returns a copy of the resource to compare it with after the reconcilers ran, once for each generation, or nil.
func (u *unwritten) before(ctx context.Context, resource client.Object, byController bool) client.Object {
	uid := resource.GetUID()
	if !logr.FromContextOrDiscard(ctx).Enabled() && !observe.IsObserved(ctx) || uid == "" && byController ||
		!u.compared.isNew(uid, resource.GetGeneration()) {
		return nil
	}
	return resource.DeepCopyObject().(client.Object)
}

// check logs and reports the fields that were changed and not written.
func (u *unwritten) check(ctx context.Context, before, resource client.Object) {
	if before == nil || before.GetGeneration() != resource.GetGeneration() {
		return // it was written
	}
	sameVersion := before.GetResourceVersion() == resource.GetResourceVersion()
	fields := []string{}
	for _, d := range difference.Between(before, resource) {
		path := d.Field()
		hasGeneration := before.GetGeneration() > 0 && !isBelow(path, "metadata")
		if !isAuthors(path) || !sameVersion && !hasGeneration {
			continue
		}
		if _, known := u.logged.LoadOrStore(path, true); !known {
			fields = append(fields, path)
		}
	}
	if len(fields) == 0 {
		return
	}
	observe.Of(nil).Report(ctx, &observe.ProblemFound{Path: step.Names(ctx), Text: fmt.Sprintf(
		"reconcilers change %s of the resource in memory only, and only the status is written; "+
			"set it in the method Default of the type or in a webhook, or write it with Update or Patch",
		strings.Join(fields, ", "))})
	logr.FromContextOrDiscard(ctx).Info("reconcilers changed fields of the resource in memory only. Only the status is "+
		"written: set them in the method Default of the type or in a webhook, or write them with Update or Patch",
		"fields", fields)
}
