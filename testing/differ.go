// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"trueup.dev/reconcilers"
	"trueup.dev/stash"
)

// Differ compares what is expected to what is observed. Each method returns a text that shows the difference, and ""
// when there is none.
//
// Embed [DefaultDiffer] to change some comparisons and keep the others. Cases that run in parallel call a Differ
// concurrently.
type Differ interface {
	// Result compares the results of reconcilers.
	Result(expected, actual reconcilers.Result) string
	// TrackRequest compares tracked references.
	TrackRequest(expected, actual TrackRequest) string
	// Event compares recorded events.
	Event(expected, actual Event) string
	// ApplyRef compares server-side applies, of resources and of their status.
	ApplyRef(expected, actual ApplyRef) string
	// PatchRef compares patches, of resources and of their status.
	PatchRef(expected, actual PatchRef) string
	// DeleteRef compares deletions.
	DeleteRef(expected, actual DeleteRef) string
	// DeleteCollectionRef compares deletions of collections.
	DeleteCollectionRef(expected, actual DeleteCollectionRef) string
	// StashedValue compares the values stashed under a key, whatever they are.
	StashedValue(expected, actual any, key stash.Key) string
	// Resource compares what a sub reconciler made of its resource.
	Resource(expected, actual client.Object) string
	// ResourceStatusUpdate compares updates of a status.
	ResourceStatusUpdate(expected, actual client.Object) string
	// ResourceUpdate compares updates.
	ResourceUpdate(expected, actual client.Object) string
	// ResourceCreate compares creations.
	ResourceCreate(expected, actual client.Object) string
	// WebhookResponse compares the responses of admission webhooks.
	WebhookResponse(expected, actual admission.Response) string
}

// DefaultDiffer is the Differ of cases that have none.
//
//   - Unexported fields are ignored where a value can be of any type: in objects, stashed values and webhook responses.
//   - Objects and stashed values: a nil slice or map equals an empty one. When conditions changed is ignored, and so
//     are the API version and the kind of typed objects.
//   - Objects that are created or updated, and stashed values: the creation timestamp and the resource version are
//     ignored too. They count in what a sub reconciler made of its resource, but for the version after a patch of its
//     finalizers, which is not up to the Differ.
//   - Status updates: nothing counts but the status. Whether it is that of the expected object is not up to the Differ.
//   - Selectors and apply configurations are compared by what they mean.
//   - Everything else must be equal.
var DefaultDiffer Differ = defaultDiffer{}

type defaultDiffer struct{}

var (
	sameObject = cmp.Options{
		reconcilers.IgnoreAllUnexported, IgnoreLastTransitionTime, IgnoreTypeMeta, cmpopts.EquateEmpty(),
	}
	sameWrite  = cmp.Options{sameObject, IgnoreCreationTimestamp, IgnoreResourceVersion}
	sameStatus = cmp.Options{sameObject, onlyStatus}
)

func (defaultDiffer) Result(expected, actual reconcilers.Result) string {
	return cmp.Diff(expected, actual)
}

func (defaultDiffer) TrackRequest(expected, actual TrackRequest) string {
	return cmp.Diff(expected, actual, NormalizeLabelSelector)
}

func (defaultDiffer) Event(expected, actual Event) string {
	return cmp.Diff(expected, actual)
}

func (defaultDiffer) ApplyRef(expected, actual ApplyRef) string {
	return cmp.Diff(expected, actual, NormalizeApplyConfiguration)
}

func (defaultDiffer) PatchRef(expected, actual PatchRef) string {
	return cmp.Diff(patchText(expected), patchText(actual))
}

// patchText returns a ref with the patch as text: the difference of short slices of bytes is shown in numbers.
func patchText(ref PatchRef) any {
	type PatchRef struct {
		Group, Kind, Namespace, Name, SubResource string
		PatchType                                 types.PatchType
		Patch                                     string
	}
	return PatchRef{ref.Group, ref.Kind, ref.Namespace, ref.Name, ref.SubResource, ref.PatchType, string(ref.Patch)}
}

func (defaultDiffer) DeleteRef(expected, actual DeleteRef) string {
	return cmp.Diff(expected, actual)
}

func (defaultDiffer) DeleteCollectionRef(expected, actual DeleteCollectionRef) string {
	return cmp.Diff(expected, actual, NormalizeLabelSelector, NormalizeFieldSelector)
}

func (defaultDiffer) StashedValue(expected, actual any, _ stash.Key) string {
	return cmp.Diff(expected, actual, sameWrite)
}

func (defaultDiffer) Resource(expected, actual client.Object) string {
	return cmp.Diff(expected, actual, sameObject)
}

func (defaultDiffer) ResourceStatusUpdate(expected, actual client.Object) string {
	return cmp.Diff(expected, actual, sameStatus)
}

func (defaultDiffer) ResourceUpdate(expected, actual client.Object) string {
	return cmp.Diff(expected, actual, sameWrite)
}

func (defaultDiffer) ResourceCreate(expected, actual client.Object) string {
	return cmp.Diff(expected, actual, sameWrite)
}

func (defaultDiffer) WebhookResponse(expected, actual admission.Response) string {
	return cmp.Diff(expected, actual, reconcilers.IgnoreAllUnexported)
}
