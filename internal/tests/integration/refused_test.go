// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// secretOf manages a Secret with the name of its parent, without OurChild.
func secretOf() reconcilers.SubReconciler[*fixture.Resource] {
	return &reconcilers.ChildReconciler[*fixture.Resource, *corev1.Secret, *corev1.SecretList]{
		DesiredChild: func(_ context.Context, parent *fixture.Resource) (*corev1.Secret, error) {
			return &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: parent.Namespace, Name: parent.Name},
				StringData: map[string]string{"key": parent.Spec.Fields["key"]},
			}, nil
		},
		MergeBeforeUpdate: func(current, desired *corev1.Secret) { current.StringData = desired.StringData },
		ReflectChildStatusOnParent: func(_ context.Context, parent *fixture.Resource, child *corev1.Secret, err error) {
			parent.Status.Fields = map[string]string{"result": string(apierrs.ReasonForError(err))}
			if child != nil {
				parent.Status.Fields["result"] = child.Name
			}
		},
	}
}

// Lifting the quota that rejects a child triggers no event.
func TestChildReconciler_RetriesWhatAQuotaRejected(t *testing.T) {
	e := newEnv(t)
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: "quota"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/secrets": resource.MustParse("0")}},
	}
	e.Add(quota)
	until(e, quota, func(quota *corev1.ResourceQuota) error {
		if len(quota.Status.Hard) == 0 {
			return fmt.Errorf("the quota is not in force yet")
		}
		return nil
	})
	e.start(root(secretOf()))
	parent := newResource("it", map[string]string{"key": "value"})
	e.Add(parent)
	until(e, parent, resultIs("Forbidden"))
	e.events("it", "CreationFailed")

	e.Must(e.Delete(e.Context(), quota))
	until(e, parent, resultIs("it"))
}

// Another part of the controller has created a Secret with a generated password.
func TestChildReconciler_DoesNotChangeSecretsOfOtherOwners(t *testing.T) {
	e := newEnv(t)
	parent := newResource("it", map[string]string{"key": "value"})
	e.Add(parent)
	password := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: e.Namespace, Name: "password",
			OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(parent, fixture.GroupVersion.WithKind("Resource")),
			},
		},
		Data: map[string][]byte{"password": []byte("generated")},
	}
	e.Add(password)
	e.start(root(secretOf()))
	until(e, parent, resultIs("it"))
	e.events("it", "Created", "UnidentifiedChildren")
	change(e, parent, func(r *fixture.Resource) { r.Spec.Fields["key"] = "another" })
	until(e, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: "it"}}, func(
		s *corev1.Secret,
	) error {
		if got := string(s.Data["key"]); got != "another" {
			return fmt.Errorf("key = %q, want %q", got, "another")
		}
		return nil
	})

	got := &corev1.Secret{}
	e.Must(e.Get(e.Context(), client.ObjectKeyFromObject(password), got))
	if diff := cmp.Diff(password, got); diff != "" {
		t.Errorf("the password has changed (-want +got):\n%s", diff)
	}
}
