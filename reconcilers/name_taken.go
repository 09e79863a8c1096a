// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/engine/ownership"
	"trueup.dev/observe"
)

// reportNameTaken reports that a child could not be created, because another object has its name. The report names the
// owner of the object: the error of the API server does not.
func reportNameTaken(ctx context.Context, blocker client.Object, cause error) {
	gvk, err := RetrieveConfigOrDie(ctx).GroupVersionKindFor(blocker)
	if err != nil {
		return // the kind was read before
	}
	observe.ReportRefused(ctx, gvk.GroupKind(), client.ObjectKeyFromObject(blocker),
		fmt.Errorf("%w; the existing object %s", cause, ownerOf(blocker)))
}

// ownerOf says to whom an object belongs, as far as its metadata shows.
func ownerOf(obj client.Object) string {
	if ref := metav1.GetControllerOfNoCopy(obj); ref != nil {
		return fmt.Sprintf("is controlled by %s %q", ref.Kind, ref.Name)
	}
	text := "has no controller"
	var first *metav1.ManagedFieldsEntry
	for i, entries := 0, obj.GetManagedFields(); i < len(entries); i++ {
		// Who writes a subresource, such as the status, has not created the object. The times have only seconds.
		if entry := &entries[i]; entry.Subresource == "" && (first == nil || entry.Time.Before(first.Time)) {
			first = entry
		}
	}
	if first != nil {
		text += ", and was first written by " + ownership.NameOf(first)
	}
	return text
}
