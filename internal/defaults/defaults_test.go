// SPDX-License-Identifier: Apache-2.0

package defaults_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/defaults"
)

func statefulSet(change func(*appsv1.StatefulSet)) *appsv1.StatefulSet {
	s := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "1"},
		Spec: appsv1.StatefulSetSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "web", Image: "web:1"}},
		}}},
	}
	change(s)
	return s
}

// TestKeepUnset_ServerOfAnotherVersion tests fields that a server with other defaults does not set.
func TestKeepUnset_ServerOfAnotherVersion(t *testing.T) {
	filled := func(change func(*appsv1.StatefulSet)) *appsv1.StatefulSet {
		return statefulSet(func(s *appsv1.StatefulSet) {
			defaults.StatefulSet(s)
			change(s)
		})
	}
	for name, tt := range map[string]struct {
		reason         string
		before, stored *appsv1.StatefulSet
		same           bool
	}{
		"older": {
			reason: "a field that both lack is not a difference",
			before: statefulSet(func(*appsv1.StatefulSet) {}),
			stored: filled(func(s *appsv1.StatefulSet) {
				s.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = nil
				s.Spec.PersistentVolumeClaimRetentionPolicy = nil
				s.Spec.Template.Spec.Containers[0].TerminationMessagePolicy = ""
			}),
			same: true,
		},
		"set by the writer": {
			reason: "a field that the writer set is a difference, although it has the default value",
			before: statefulSet(func(s *appsv1.StatefulSet) {
				s.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{
					MaxUnavailable: new(intstr.FromInt32(1)),
				}
			}),
			stored: filled(func(s *appsv1.StatefulSet) { s.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = nil }),
		},
		"drift": {
			reason: "a field that only the stored object has is a difference, unless it has the default value",
			before: statefulSet(func(*appsv1.StatefulSet) {}),
			stored: filled(func(s *appsv1.StatefulSet) { s.Spec.Replicas = new(int32(5)) }),
		},
		"hidden drift": {
			reason: "a field that has no default and is set in the stored object is a difference",
			before: statefulSet(func(*appsv1.StatefulSet) {}),
			stored: filled(func(s *appsv1.StatefulSet) { s.Spec.Template.Spec.HostNetwork = true }),
		},
	} {
		t.Run(name, func(t *testing.T) {
			obj, stored := tt.before.DeepCopy(), tt.stored.DeepCopy()
			if !defaults.Update(obj, stored) {
				t.Fatal("StatefulSet is unknown")
			}
			defaults.KeepUnset(obj, tt.before, stored)
			if diff := cmp.Diff(tt.stored, obj); (diff == "") != tt.same {
				t.Errorf("%s: got same = %v, want %v (-stored +filled in):\n%s", tt.reason, diff == "", tt.same, diff)
			}
			if diff := cmp.Diff(tt.stored, stored); diff != "" {
				t.Errorf("the stored object was changed (-before +after):\n%s", diff)
			}
		})
	}
}

func TestUpdate_UnknownKind(t *testing.T) {
	var obj client.Object = &metav1.PartialObjectMetadata{}
	if defaults.Update(obj, obj) {
		t.Error("Update must return false for a kind that is not built in")
	}
}
