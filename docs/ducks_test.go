// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	websitev1 "trueup.dev/examples/website/api/v1"
	"trueup.dev/reconcilers"
)

// region ducks-type
// Scalable has the fields that Deployments, StatefulSets, Websites and other kinds have in common. It is registered in
// no scheme.
type Scalable struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ScalableSpec `json:"spec"`
}

type ScalableSpec struct {
	Replicas *int32 `json:"replicas,omitempty"`
}

// endregion

func (s *Scalable) DeepCopyObject() runtime.Object { return s.DeepCopy() }

func (s *Scalable) DeepCopy() *Scalable {
	out := &Scalable{TypeMeta: s.TypeMeta, ObjectMeta: *s.ObjectMeta.DeepCopy()}
	if s.Spec.Replicas != nil {
		out.Spec.Replicas = new(*s.Spec.Replicas)
	}
	return out
}

// region ducks-cast
// AtMost limits the replicas of any kind that has replicas.
func AtMost(limit int32) reconcilers.SubReconciler[*Scalable] {
	return &reconcilers.SyncReconciler[*Scalable]{
		Name: "AtMost",
		Sync: func(_ context.Context, resource *Scalable) error {
			if resource.Spec.Replicas != nil && *resource.Spec.Replicas > limit {
				resource.Spec.Replicas = &limit // in memory, as seen by the reconcilers that follow
			}
			return nil
		},
	}
}

func LimitedWebsite() reconcilers.SubReconciler[*websitev1.Website] {
	return reconcilers.Sequence[*websitev1.Website]{
		&reconcilers.CastResource[*websitev1.Website, *Scalable]{Reconciler: AtMost(3)},
		DeploymentReconciler(),
	}
}

// endregion

func Example_castResource() {
	site := newSite()
	site.Spec.Replicas = new(int32(100))
	cluster := newCluster(site)
	reconcileOnce(cluster, LimitedWebsite())
	deployment := &appsv1.Deployment{}
	if err := cluster.Get(context.Background(), client.ObjectKeyFromObject(site), deployment); err != nil {
		fmt.Println(err)
	}
	fmt.Println("replicas:", *deployment.Spec.Replicas)
	// Output:
	// event: Normal Created: Created Deployment "bakery"
	// replicas: 3
}

// region ducks-root
// ScaleDownReconciler reconciles a kind when only its replicas are known.
func ScaleDownReconciler(gvk schema.GroupVersionKind, c reconcilers.Config) *reconcilers.ResourceReconciler[*Scalable] {
	apiVersion, kind := gvk.ToAPIVersionAndKind()
	return &reconcilers.ResourceReconciler[*Scalable]{
		Name: "ScaleDown" + kind,
		Type: &Scalable{TypeMeta: metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}}, // the kind that it represents
		Reconciler: &reconcilers.SyncReconciler[*Scalable]{
			Sync: func(ctx context.Context, resource *Scalable) error {
				before := resource.DeepCopy()
				resource.Spec.Replicas = new(int32(0))
				// Update would remove all other fields
				return reconcilers.RetrieveConfigOrDie(ctx).Patch(ctx, resource, client.MergeFrom(before))
			},
		},
		Config: c,
	}
}

// endregion

func Example_duckRoot() {
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec:       appsv1.DeploymentSpec{Replicas: new(int32(2)), Paused: true},
	}
	cluster := newCluster(deployment)
	r := ScaleDownReconciler(appsv1.SchemeGroupVersion.WithKind("Deployment"), cluster)
	if _, err := r.Reconcile(context.Background(), requestFor(deployment)); err != nil {
		fmt.Println(err)
	}
	if err := cluster.Get(context.Background(), client.ObjectKeyFromObject(deployment), deployment); err != nil {
		fmt.Println(err)
	}
	fmt.Println("replicas:", *deployment.Spec.Replicas, "paused:", deployment.Spec.Paused)
	// Output:
	// replicas: 0 paused: true
}

// region ducks-unstructured
func LabelReconciler(
	gvk schema.GroupVersionKind, c reconcilers.Config,
) *reconcilers.ResourceReconciler[*unstructured.Unstructured] {
	anything := &unstructured.Unstructured{}
	anything.SetGroupVersionKind(gvk)
	return &reconcilers.ResourceReconciler[*unstructured.Unstructured]{
		Name: "Label" + gvk.Kind,
		Type: anything,
		Reconciler: &reconcilers.SyncReconciler[*unstructured.Unstructured]{
			Sync: func(_ context.Context, resource *unstructured.Unstructured) error {
				return unstructured.SetNestedField(resource.Object, "seen", "status", "label")
			},
		},
		Config: c,
	}
}

// endregion

func Example_unstructuredRoot() {
	r := LabelReconciler(websitev1.GroupVersion.WithKind("Website"), newCluster(newSite()))
	if _, err := r.Reconcile(context.Background(), requestFor(newSite())); err != nil {
		fmt.Println(err)
	}
	// Output:
	// event: Normal StatusUpdated: Updated status
}
