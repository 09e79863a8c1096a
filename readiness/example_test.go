// SPDX-License-Identifier: Apache-2.0

package readiness_test

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/readiness"
)

func ExampleOf() {
	replicas := int32(3)
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Generation: 1},
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas},
		Status: appsv1.DeploymentStatus{
			ObservedGeneration: 1, Replicas: 3, UpdatedReplicas: 3, AvailableReplicas: 2,
		},
	}
	r := readiness.Of(deployment)
	fmt.Println(r.IsReady(), r.Reason, r.Message)
	// Output:
	// false Unavailable 2 of 3 replicas are available
}

func ExampleFunc() {
	hasKey := readiness.Func(func(obj client.Object) readiness.Readiness {
		if secret, ok := obj.(*corev1.Secret); ok && len(secret.Data["tls.key"]) > 0 {
			return readiness.Readiness{State: readiness.Ready, Reason: readiness.ReasonReady}
		}
		return readiness.Readiness{State: readiness.Progressing, Reason: "NoKey", Message: "the key is not issued yet"}
	})
	fmt.Println(hasKey.Of(&corev1.Secret{}))
	// Output:
	// Progressing: the key is not issued yet
}

// A Func need not check generations.
func ExampleObserved() {
	always := readiness.Func(func(client.Object) readiness.Readiness {
		return readiness.Readiness{State: readiness.Ready, Reason: readiness.ReasonReady}
	})
	fmt.Println(readiness.Observed(always).Of(custom(2, 1, nil)))
	// Output:
	// Progressing: generation 2 is not observed yet
}
