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

// Differ compares expectations with observations. Each method returns a text with the difference, or "" if there is
// none.
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
	// StashedValue compares the values stashed under a key, which may be of any type.
	StashedValue(expected, actual any, key stash.Key) string
	// Resource compares the resource after the call of a sub reconciler.
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

// DefaultDiffer is the Differ of cases without one.
//
//   - It ignores unexported fields in values that can be of any type: objects, stashed values and webhook responses.
//   - Objects and stashed values: a nil slice or map equals an empty one. It ignores the transition times of
//     conditions, and the API version and kind of typed objects.
//   - Created and updated objects, and stashed values: it also ignores the creation timestamp and the resource version.
//     It compares them in the resource of a sub reconciler. A resource version after a patch of the finalizers is
//     accepted before the Differ is called.
//   - Status updates: it compares the status only. The identity of the object is compared without the Differ.
//   - Selectors and apply configurations are compared by their meaning.
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

// patchText returns a ref with the patch as text. Without it, the difference of short slices of bytes shows numbers.
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
