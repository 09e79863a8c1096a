// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"trueup.dev/external"
	"trueup.dev/reconcilers"
)

func deleteBucket(ctx context.Context, name string) {
	if external.Announce(ctx, "delete bucket %s", name) {
		return // in a plan
	}
	fmt.Println("deleting bucket", name)
}

func ExampleAnnounce() {
	deleteBucket(context.Background(), "photos")
	// Output: deleting bucket photos
}

func ExampleInPlan() {
	ctx := context.Background() // of a set-up function
	if !external.InPlan(ctx) {
		fmt.Println("connecting to the cloud")
	}
	// Output: connecting to the cloud
}

type bucket struct{ id, owner string }

func ExampleResource() {
	buckets := map[string]*bucket{} // stands for a cloud
	var _ reconcilers.SubReconciler[*corev1.ConfigMap] = &external.Resource[*corev1.ConfigMap, *bucket]{
		Name:      "Bucket",
		Finalizer: "example.com/bucket",
		ID:        func(r *corev1.ConfigMap) string { return r.Annotations["example.com/bucket"] },
		SetID: func(r *corev1.ConfigMap, id string) {
			metav1.SetMetaDataAnnotation(&r.ObjectMeta, "example.com/bucket", id)
		},
		Find: func(_ context.Context, _ *corev1.ConfigMap, token string) (string, *bucket, bool, error) {
			for id, b := range buckets {
				if b.owner == token {
					return id, b, true, nil
				}
			}
			return "", nil, false, nil
		},
		Observe: func(_ context.Context, _ *corev1.ConfigMap, id string) (*bucket, bool, error) {
			b, found := buckets[id]
			return b, found, nil
		},
		Create: func(_ context.Context, r *corev1.ConfigMap, token string) (string, *bucket, error) {
			buckets[r.Name] = &bucket{id: r.Name, owner: token}
			return r.Name, buckets[r.Name], nil
		},
		Delete: func(_ context.Context, _ *corev1.ConfigMap, id string) error {
			delete(buckets, id)
			return nil
		},
	}
}
