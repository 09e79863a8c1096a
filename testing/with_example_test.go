// SPDX-License-Identifier: Apache-2.0

package testing_test

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rtesting "trueup.dev/testing"
)

// Edits that several tests need are functions with a name.
func scaledTo(replicas int32) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Spec.Replicas = &replicas }
}

func paused(d *appsv1.Deployment) { d.Spec.Paused = true }

func ExampleWith() {
	base := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "blog"}}

	given := rtesting.With(base, scaledTo(1), paused)
	expected := rtesting.With(given, func(d *appsv1.Deployment) {
		d.Spec.Replicas = new(int32(3))
	})

	fmt.Println(*given.Spec.Replicas, given.Spec.Paused)
	fmt.Println(*expected.Spec.Replicas, expected.Spec.Paused)
	fmt.Println(base.Spec.Replicas == nil, base.Spec.Paused)
	// Output:
	// 1 true
	// 3 true
	// true false
}
