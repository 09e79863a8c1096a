// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"trueup.dev/internal/objects/empty"
	"trueup.dev/testing/internal/literal"
)

// AssertExpectations fails the test for each difference between the expectations and what the clients, the recorders
// and the tracker of the config have recorded so far, in this order.
func (c *ExpectConfig) AssertExpectations(t *testing.T) {
	helper(t)()
	if err := c.open().err; err != nil {
		c.fail(t, err.Error(), "")
		return
	}
	c.AssertClientExpectations(t)
	c.AssertRecorderExpectations(t)
	c.AssertTrackerExpectations(t)
	if t != nil && t.Failed() {
		c.explainMissingBlockers(t)
		for _, explanation := range slices.Concat(c.actions().explanations, c.idleReactors()) {
			t.Log(explanation)
		}
	}
}

// idleReactors names the reactors that answered no call. A reactor that only observes never does.
func (c *ExpectConfig) idleReactors() []string {
	var texts []string
	for i := range c.open().answered {
		if !c.open().answered[i].Load() {
			texts = append(texts, fmt.Sprintf("WithReactors[%d] answered no call%s: if it should, compare its verb and its "+
				"kind, which is not the plural, with the calls.", i, c.configName()))
		}
	}
	return texts
}

// AssertClientExpectations asserts all writes.
func (c *ExpectConfig) AssertClientExpectations(t *testing.T) {
	helper(t)()
	c.AssertClientApplyExpectations(t)
	c.AssertClientCreateExpectations(t)
	c.AssertClientUpdateExpectations(t)
	c.AssertClientPatchExpectations(t)
	c.AssertClientDeleteExpectations(t)
	c.AssertClientDeleteCollectionExpectations(t)
	c.AssertClientStatusUpdateExpectations(t)
	c.AssertClientStatusPatchExpectations(t)
	c.AssertClientStatusApplyExpectations(t)
	c.AssertClientSubResourceExpectations(t)
}

// AssertClientApplyExpectations asserts ExpectApplies.
func (c *ExpectConfig) AssertClientApplyExpectations(t *testing.T) {
	helper(t)()
	assert(t, c, expectation[ApplyRef]{
		field: "ExpectApplies", item: "Apply", elem: "rtesting.ApplyRef",
		expected: c.ExpectApplies, observed: each(c.actions().ApplyActions, NewApplyRef), diff: c.differ().ApplyRef,
	})
}

// AssertClientCreateExpectations asserts ExpectCreates.
func (c *ExpectConfig) AssertClientCreateExpectations(t *testing.T) {
	helper(t)()
	assert(
		t, c, c.objects("ExpectCreates", "Create", c.ExpectCreates, c.actions().CreateActions, c.differ().ResourceCreate),
	)
}

// AssertClientUpdateExpectations asserts ExpectUpdates.
func (c *ExpectConfig) AssertClientUpdateExpectations(t *testing.T) {
	helper(t)()
	assert(
		t, c,
		c.objects(
			"ExpectUpdates", "Update", c.ExpectUpdates, c.withoutNoOps(c.actions().UpdateActions), c.differ().ResourceUpdate,
		),
	)
}

// AssertClientPatchExpectations asserts ExpectPatches.
func (c *ExpectConfig) AssertClientPatchExpectations(t *testing.T) {
	helper(t)()
	assert(t, c, expectation[PatchRef]{
		field: "ExpectPatches", item: "Patch", elem: "rtesting.PatchRef",
		expected: c.ExpectPatches, observed: each(c.actions().PatchActions, NewPatchRef), diff: c.diffPatch,
	})
}

// AssertClientDeleteExpectations asserts ExpectDeletes.
func (c *ExpectConfig) AssertClientDeleteExpectations(t *testing.T) {
	helper(t)()
	assert(t, c, expectation[DeleteRef]{
		field: "ExpectDeletes", item: "Delete", elem: "rtesting.DeleteRef",
		expected: c.ExpectDeletes, observed: each(c.actions().DeleteActions, NewDeleteRef), diff: c.differ().DeleteRef,
	})
}

// AssertClientDeleteCollectionExpectations asserts ExpectDeleteCollections.
func (c *ExpectConfig) AssertClientDeleteCollectionExpectations(t *testing.T) {
	helper(t)()
	assert(t, c, expectation[DeleteCollectionRef]{
		field: "ExpectDeleteCollections", item: "DeleteCollection", elem: "rtesting.DeleteCollectionRef",
		expected: c.ExpectDeleteCollections, observed: each(c.actions().DeleteCollectionActions, NewDeleteCollectionRef),
		diff: c.differ().DeleteCollectionRef, tidy: DeleteCollectionRef.tidy,
	})
}

// AssertClientStatusUpdateExpectations asserts ExpectStatusUpdates.
func (c *ExpectConfig) AssertClientStatusUpdateExpectations(t *testing.T) {
	helper(t)()
	assert(
		t, c,
		c.objects(
			"ExpectStatusUpdates", "StatusUpdate", c.ExpectStatusUpdates, c.actions().StatusUpdateActions, c.diffStatus,
		),
	)
}

// AssertClientStatusPatchExpectations asserts ExpectStatusPatches.
func (c *ExpectConfig) AssertClientStatusPatchExpectations(t *testing.T) {
	helper(t)()
	assert(t, c, expectation[PatchRef]{
		field: "ExpectStatusPatches", item: "StatusPatch", elem: "rtesting.PatchRef",
		expected: c.ExpectStatusPatches, observed: each(c.actions().StatusPatchActions, NewPatchRef), diff: c.diffPatch,
	})
}

// AssertClientStatusApplyExpectations asserts ExpectStatusApplies.
func (c *ExpectConfig) AssertClientStatusApplyExpectations(t *testing.T) {
	helper(t)()
	assert(t, c, expectation[ApplyRef]{
		field: "ExpectStatusApplies", item: "StatusApply", elem: "rtesting.ApplyRef",
		expected: c.ExpectStatusApplies, observed: each(c.actions().StatusApplyActions, NewApplyRef),
		diff: c.differ().ApplyRef,
	})
}

// AssertClientSubResourceExpectations asserts ExpectSubResources, unless it is nil and the config is not Realistic.
func (c *ExpectConfig) AssertClientSubResourceExpectations(t *testing.T) {
	helper(t)()
	if c.ExpectSubResources == nil && !c.Realistic {
		return
	}
	assert(t, c, expectation[SubResourceRef]{
		field: "ExpectSubResources", item: "SubResource", elem: "rtesting.SubResourceRef",
		expected: c.ExpectSubResources, observed: each(c.actions().SubResourceActions, NewSubResourceRef),
		diff: c.diffSubResource,
	})
}

// AssertRecorderExpectations asserts ExpectEvents.
func (c *ExpectConfig) AssertRecorderExpectations(t *testing.T) {
	helper(t)()
	emitted, dropped := c.open().events.observed()
	for _, reason := range dropped {
		c.fail(t, "Event dropped"+c.configName()+": "+reason, "")
	}
	assert(t, c, expectation[Event]{
		field: "ExpectEvents", item: "Event", elem: "rtesting.Event",
		expected: c.ExpectEvents, observed: emitted, diff: c.differ().Event,
	})
}

// AssertTrackerExpectations asserts ExpectTracks.
func (c *ExpectConfig) AssertTrackerExpectations(t *testing.T) {
	helper(t)()
	assert(t, c, expectation[TrackRequest]{
		field: "ExpectTracks", item: "Track", elem: "rtesting.TrackRequest",
		expected: each(c.ExpectTracks, TrackRequest.normalized), observed: c.open().tracks.observed(),
		diff: c.differ().TrackRequest,
	})
}

// actions returns a copy of what was recorded so far. Goroutines of a reconciler may still record calls.
func (c *ExpectConfig) actions() *clientWrapper {
	w := c.open().client
	w.lock.Lock()
	defer w.lock.Unlock()
	return &clientWrapper{
		ApplyActions:            w.ApplyActions,
		CreateActions:           w.CreateActions,
		UpdateActions:           w.UpdateActions,
		PatchActions:            w.PatchActions,
		DeleteActions:           w.DeleteActions,
		DeleteCollectionActions: w.DeleteCollectionActions,
		StatusUpdateActions:     w.StatusUpdateActions,
		StatusPatchActions:      w.StatusPatchActions,
		StatusApplyActions:      w.StatusApplyActions,
		SubResourceActions:      w.SubResourceActions,
		explanations:            w.explanations,
		taken:                   w.taken,
		moved:                   maps.Clone(w.moved),
	}
}

// objects returns the expectation about the objects of actions.
func (c *ExpectConfig) objects(
	field, item string, expected []client.Object, actions []objectAction, diff func(
		expected, observed client.Object,
	) string,
) expectation[client.Object] {
	e := expectation[client.Object]{
		field: field, item: item, elem: "client.Object",
		expected: each(expected, unwrapped),
		observed: each(actions, func(action objectAction) client.Object { return action.GetObject().(client.Object) }),
	}
	for i, observed := range e.observed {
		if i < len(e.expected) && e.expected[i] != nil {
			e.expected[i], e.observed[i] = c.normalize(e.expected[i], observed)
		} else {
			_, e.observed[i] = c.normalize(empty.Like(observed), observed)
		}
	}
	e.diff = func(expected, observed client.Object) string {
		if expected == nil {
			return "the expected object is nil"
		}
		return diff(expected, observed)
	}
	e.tidy = func(observed client.Object) client.Object { return literal.Compared(observed, diff) }
	return e
}

// unwrapped returns a copy of an object, see unwrap. It returns nil for no object.
func unwrapped(obj client.Object) client.Object {
	obj, _ = unwrap(obj)
	return obj
}

// normalize returns the parts of two objects to compare.
func (c *ExpectConfig) normalize(expected, observed client.Object) (client.Object, client.Object) {
	if api := c.open().api; api != nil && api.normalize != nil {
		return api.normalize(expected, observed)
	}
	return expected, observed
}

// diffStatus compares the status and the identity of objects.
func (c *ExpectConfig) diffStatus(expected, observed client.Object) string {
	if expected.GetObjectKind().GroupVersionKind().Empty() {
		// An unstructured object of a call has a kind. Typed objects need none: their Go type implies it.
		expected.GetObjectKind().SetGroupVersionKind(observed.GetObjectKind().GroupVersionKind())
	}
	if diff := c.differ().ResourceStatusUpdate(expected, observed); diff != "" {
		return diff
	}
	return cmp.Diff(c.identity(expected), c.identity(observed))
}

// identity identifies an object.
type identity struct {
	Group, Kind, Namespace, Name string
}

func (c *ExpectConfig) identity(obj client.Object) identity {
	kind := c.kindOf(obj)
	return identity{Group: kind.Group, Kind: kind.Kind, Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// diffSubResource compares writes to subresources other than the status.
func (c *ExpectConfig) diffSubResource(expected, observed SubResourceRef) string {
	expected.Body = unwrapped(expected.Body)
	if expected.Body != nil && observed.Body != nil {
		expected.Body, observed.Body = c.normalize(expected.Body, observed.Body)
	}
	return cmp.Diff(expected, observed, sameWrite, NormalizeApplyConfiguration)
}

// expectation is an Expect field of a config, with the observed values.
type expectation[T any] struct {
	// field is the name of the field, item the name of an element in messages, elem its Go type.
	field, item, elem  string
	expected, observed []T
	diff               func(expected, observed T) string
	// tidy returns an observed value as people write it. Nil for no change.
	tidy func(observed T) T
}

// assert fails the test for each difference between expected and observed values, by position. The last failure also
// prints all observed values.
func assert[T any](t *testing.T, c *ExpectConfig, e expectation[T]) {
	helper(t)()
	if err := c.open().err; err != nil {
		c.fail(t, err.Error(), "")
		return
	}
	failures := e.failures(c)
	for i, failure := range failures {
		addition := ""
		if i == len(failures)-1 && t != nil {
			addition = e.paste(c.Scheme)
		}
		c.fail(t, failure, addition)
	}
}

func (e expectation[T]) failures(c *ExpectConfig) []string {
	var failures []string
	for i, expected := range e.expected {
		if i >= len(e.observed) {
			failures = append(
				failures, fmt.Sprintf("%s[%d] not observed%s: %s", e.field, i, c.configName(), c.describe(expected)),
			)
		} else if diff := e.diff(expected, e.observed[i]); diff != "" {
			failures = append(failures, fmt.Sprintf("%s[%d] differs%s (%s, %s):\n%s", e.field, i, c.configName(),
				DiffRemovedColor.Sprint("-expected"), DiffAddedColor.Sprint("+actual"), ColorizeDiff(diff)))
		}
	}
	for _, extra := range e.observed[min(len(e.expected), len(e.observed)):] {
		failures = append(failures, fmt.Sprintf("Unexpected %s observed%s: %s", e.item, c.configName(), c.describe(extra)))
	}
	return failures
}

// paste returns the observed values as the field of a test case, for users to paste if the values are correct.
func (e expectation[T]) paste(scheme *runtime.Scheme) string {
	if len(e.observed) == 0 {
		return "\nobserved: none"
	}
	return "\nobserved, as an expectation:\n" + literal.Field(e.field, e.elem, each(e.observed, func(observed T) any {
		if e.tidy != nil {
			observed = e.tidy(observed)
		}
		return observed
	}), scheme)
}

// fail records a failure, and prints it with an addition, which is not recorded.
func (c *ExpectConfig) fail(t *testing.T, failure, addition string) {
	c.observedErrors = append(c.observedErrors, failure)
	if t != nil {
		t.Helper()
		t.Error(strings.TrimSuffix(failure, "\n") + addition)
	}
}

// helper returns the Helper method of t, which may be nil. Callers call the result at once.
func helper(t *testing.T) func() {
	if t == nil {
		return func() {}
	}
	return t.Helper
}

// each returns the converted items.
func each[From, To any](items []From, convert func(From) To) []To {
	converted := make([]To, len(items))
	for i, item := range items {
		converted[i] = convert(item)
	}
	return converted
}

// describe returns a line about a value that is missing or not expected.
func (c *ExpectConfig) describe(v any) string {
	switch v := v.(type) {
	case client.Object:
		name := v.GetName()
		if name == "" && v.GetGenerateName() != "" {
			name = v.GetGenerateName() + "*"
		}
		kind := c.kindOf(v)
		if kind.Empty() {
			kind.Kind = fmt.Sprintf("%T", v)
		}
		return target(kind, "", v.GetNamespace(), name)
	case Event:
		about := target(v.GroupVersionKind().GroupKind(), "", v.Namespace, v.Name)
		return strings.Join(
			strings.Fields(fmt.Sprintf("%s %s on %s: %s %s%s", v.Type, v.Reason, about, v.Action, v.Message, v.Note)), " ",
		)
	case PatchRef:
		return fmt.Sprintf(
			"%s: %s %s", target(schema.GroupKind{Group: v.Group, Kind: v.Kind}, v.SubResource, v.Namespace, v.Name), v.PatchType,
			v.Patch,
		)
	case ApplyRef:
		return target(schema.GroupKind{Group: v.Group, Kind: v.Kind}, "", v.Namespace, v.Name)
	case DeleteRef:
		return target(schema.GroupKind{Group: v.Group, Kind: v.Kind}, "", v.Namespace, v.Name)
	case DeleteCollectionRef:
		all := target(schema.GroupKind{Group: v.Group, Kind: v.Kind}, "", v.Namespace, "*")
		if v.Labels != nil && !v.Labels.Empty() {
			all += fmt.Sprintf(" with labels %s", v.Labels)
		}
		if v.Fields != nil && !v.Fields.Empty() {
			all += fmt.Sprintf(" with fields %s", v.Fields)
		}
		return all
	case SubResourceRef:
		return v.Verb + " " + target(schema.GroupKind{Group: v.Group, Kind: v.Kind}, v.SubResource, v.Namespace, v.Name)
	default:
		// The text of a TrackRequest must not change: users' tests compare it.
		return fmt.Sprint(v)
	}
}

// kindOf returns the kind of an object, or an empty one if it is unknown.
func (c *ExpectConfig) kindOf(obj client.Object) schema.GroupKind {
	if gvk, err := apiutil.GVKForObject(obj, c.Scheme); err == nil {
		return gvk.GroupKind()
	}
	return obj.GetObjectKind().GroupVersionKind().GroupKind()
}

// target names the target of a call, as in Deployment.apps/scale default/web.
func target(kind schema.GroupKind, subResource, namespace, name string) string {
	target := kind.String()
	if subResource != "" {
		target += "/" + subResource
	}
	target += " "
	if namespace != "" {
		target += namespace + "/"
	}
	return target + name
}
