// SPDX-License-Identifier: Apache-2.0

// Package site has a controller as it was written for v0.12 to v0.22.
package site

import (
	"context"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmware-labs/reconciler-runtime/reconcilers"
	rtime "github.com/vmware-labs/reconciler-runtime/time"
)

func Reconciler(c reconcilers.Config) *reconcilers.ResourceReconciler[*corev1.ConfigMap] {
	return &reconcilers.ResourceReconciler[*corev1.ConfigMap]{
		Name:             "Site",
		SkipStatusUpdate: true,
		Reconciler: reconcilers.Sequence[*corev1.ConfigMap]{
			&reconcilers.SyncReconciler[*corev1.ConfigMap]{Sync: halts},
			&reconcilers.ChildReconciler[*corev1.ConfigMap, *corev1.Secret, *corev1.SecretList]{
				DesiredChild: func(ctx context.Context, resource *corev1.ConfigMap) (*corev1.Secret, error) {
					return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: resource.Namespace, Name: resource.Name}}, nil
				},
				HarmonizeImmutableFields: func(current, desired *corev1.Secret) { desired.Type = current.Type },
				MergeBeforeUpdate:        func(current, desired *corev1.Secret) { current.Data = desired.Data },
				Sanitize:                 func(child *corev1.Secret) interface{} { return len(child.Data) },
				ReflectChildStatusOnParent: func(ctx context.Context, parent *corev1.ConfigMap, child *corev1.Secret, err error) {
					parent.Data = map[string]string{"secret": child.Name}
				},
			},
		},
		Config: c,
	}
}

var secrets = &reconcilers.ResourceManager[*corev1.Secret]{
	MergeBeforeUpdate: func(current, desired *corev1.Secret) { current.Data = desired.Data },
}

// Greet has nothing to do with reconcilers.
func Greet(w io.Writer, text string, times int) {
	for i := 0; i < times; i++ {
		fmt.Fprintf(w, text)
	}
}

// Started returns the time of the request.
func Started(ctx context.Context) time.Time { return rtime.RetrieveNow(ctx) }
