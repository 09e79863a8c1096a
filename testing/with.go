// SPDX-License-Identifier: Apache-2.0

package testing

// With returns a deep copy of base with the edits applied in order. It does not change base, so that all objects of a
// table can be derived from one:
//
//	GivenObjects: []client.Object{
//		rtesting.With(website, func(w *demov1.Website) {
//			w.Spec.Replicas = 3
//		}),
//	},
//
// It accepts all types with a generated DeepCopy method: objects, and parts of objects such as a PodSpec.
func With[T interface{ DeepCopy() T }](base T, edits ...func(T)) T {
	derived := base.DeepCopy()
	for _, edit := range edits {
		edit(derived)
	}
	return derived
}
