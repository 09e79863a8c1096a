// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"fmt"
	"maps"
	"slices"
	"testing"
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
