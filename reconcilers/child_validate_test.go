// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
	"trueup.dev/validation"
)

func TestChildReconciler_Validate(t *testing.T) {
	// This type has the name that the reference documents.
	type reconciler = reconcilers.ChildReconciler[*fixture.Resource, *corev1.Pod, *corev1.PodList]
	complete := func(changes ...func(*reconciler)) *reconciler {
		r := &reconciler{
			DesiredChild:               func(context.Context, *fixture.Resource) (*corev1.Pod, error) { return nil, nil },
			ReflectChildStatusOnParent: func(context.Context, *fixture.Resource, *corev1.Pod, error) {},
			ChildObjectManager: &reconcilers.UpdatingObjectManager[*corev1.Pod]{
				MergeBeforeUpdate: func(_, _ *corev1.Pod) {},
			},
		}
		for _, change := range changes {
			change(r)
		}
		return r
	}
	ours := func(*fixture.Resource, *corev1.Pod) bool { return true }
	options := func(context.Context, *fixture.Resource) []client.ListOption { return nil }
	merge := func(_, _ *corev1.Pod) {}
	const prefix = `ChildReconciler "PodChildReconciler" `

	for name, tc := range map[string]struct {
		reconciler *reconciler
		recursive  bool
		want       string
	}{
		"valid":            {reconciler: complete()},
		"valid, recursive": {reconciler: complete(), recursive: true},
		"valid with ReflectChildStatusOnParent": {reconciler: complete(func(r *reconciler) {
			r.ReflectChildStatusOnParent = nil
			r.ReflectChildStatusOnParentWithError = func(
				context.Context, *fixture.Resource, *corev1.Pod, error,
			) error {
				return nil
			}
		})},
		"valid by MergeBeforeUpdate": {reconciler: complete(func(r *reconciler) {
			r.ChildObjectManager, r.MergeBeforeUpdate = nil, merge
		}), recursive: true},
		"valid without owner references": {reconciler: complete(func(r *reconciler) {
			r.SkipOwnerReference, r.OurChild, r.ListOptions = true, ours, options
		})},
		"empty": {reconciler: &reconciler{}, want: prefix + "must implement DesiredChild"},
		"named": {reconciler: &reconciler{Name: "test"}, want: `ChildReconciler "test" must implement DesiredChild`},
		"no reflect": {
			reconciler: complete(func(r *reconciler) { r.ReflectChildStatusOnParent = nil }),
			want:       prefix + "must implement ReflectChildStatusOnParent or ReflectChildStatusOnParentWithError",
		},
		"no OurChild": {
			reconciler: complete(func(r *reconciler) { r.SkipOwnerReference, r.ListOptions = true, options }),
			want:       prefix + "must implement OurChild since owner references are not used",
		},
		"no ListOptions": {
			reconciler: complete(func(r *reconciler) { r.SkipOwnerReference, r.OurChild = true, ours }),
			want:       prefix + "must implement ListOptions since owner references are not used",
		},
		"a finalizer implies no owner references": {
			reconciler: complete(func(r *reconciler) {
				r.ChildObjectManager, r.MergeBeforeUpdate, r.Finalizer = nil, merge, "f"
			}),
			want: prefix + "must implement OurChild since owner references are not used",
		},
		"no manager": {
			reconciler: complete(func(r *reconciler) { r.ChildObjectManager = nil }),
			want:       prefix + "must implement ChildObjectManager",
		},
		"both a manager and its fields": {
			reconciler: complete(func(r *reconciler) { r.MergeBeforeUpdate = merge }),
			want:       prefix + "may not implement both ChildObjectManager and MergeBeforeUpdate",
		},
		"invalid manager": {
			reconciler: complete(func(r *reconciler) {
				r.ChildObjectManager = &reconcilers.UpdatingObjectManager[*corev1.Pod]{}
			}),
		},
		"invalid manager, recursive": {
			reconciler: complete(func(r *reconciler) {
				r.ChildObjectManager = &reconcilers.UpdatingObjectManager[*corev1.Pod]{}
			}),
			recursive: true,
			want:      prefix + `must have a valid ChildObjectManager: UpdatingObjectManager "" must define MergeBeforeUpdate`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			if tc.recursive {
				ctx = validation.WithRecursive(newWorld(t).Context())
			}
			wantText(t, tc.want, tc.reconciler.Validate(ctx))
		})
	}

	t.Run("order", func(t *testing.T) {
		err := (&reconciler{SkipOwnerReference: true}).SetupWithManager(context.Background(), nil, nil)
		wantText(t, prefix+"must implement DesiredChild\n"+
			prefix+"must implement ReflectChildStatusOnParent or ReflectChildStatusOnParentWithError\n"+
			prefix+"must implement OurChild since owner references are not used\n"+
			prefix+"must implement ListOptions since owner references are not used\n"+
			prefix+"must implement ChildObjectManager"+adviceToMerge, err)
	})
	t.Run("every field of the default manager", func(t *testing.T) {
		r := complete(func(r *reconciler) {
			r.MergeBeforeUpdate, r.HarmonizeImmutableFields, r.Finalizer = merge, merge, "f"
			r.Sanitize = func(pod *corev1.Pod) any { return pod.Name }
			r.OurChild, r.ListOptions = ours, options
		})
		wantText(t, prefix+"may not implement both ChildObjectManager and MergeBeforeUpdate\n"+
			prefix+"may not implement both ChildObjectManager and HarmonizeImmutableFields\n"+
			prefix+"may not implement both ChildObjectManager and Sanitize\n"+
			prefix+"may not implement both ChildObjectManager and Finalizer", r.SetupWithManager(context.Background(), nil, nil))
	})
}
