// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	websitev1 "trueup.dev/examples/website/api/v1"
	"trueup.dev/reconcilers"
)

// region children-one
func DeploymentReconciler() reconcilers.SubReconciler[*websitev1.Website] {
	return &reconcilers.ChildReconciler[*websitev1.Website, *appsv1.Deployment, *appsv1.DeploymentList]{
		DesiredChild: func(_ context.Context, site *websitev1.Website) (*appsv1.Deployment, error) {
			if site.Spec.Replicas != nil && *site.Spec.Replicas == 0 {
				return nil, nil // no child; an existing one is deleted
			}
			labels := map[string]string{websitev1.LabelWebsite: site.Name}
			return &appsv1.Deployment{
				ObjectMeta: metav1.ObjectMeta{Namespace: site.Namespace, Name: site.Name, Labels: labels},
				Spec: appsv1.DeploymentSpec{
					Replicas: site.Spec.Replicas,
					Selector: &metav1.LabelSelector{MatchLabels: labels},
					Template: corev1.PodTemplateSpec{
						ObjectMeta: metav1.ObjectMeta{Labels: labels},
						Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: site.Spec.Image}}},
					},
				},
			}, nil
		},
		MergeBeforeUpdate: func(current, desired *appsv1.Deployment) {
			current.Labels = reconcilers.MergeMaps(current.Labels, desired.Labels) // other clients may add labels
			current.Spec.Replicas, current.Spec.Template = desired.Spec.Replicas, desired.Spec.Template
		},
		ReflectChildStatusOnParent: func(ctx context.Context, site *websitev1.Website, child *appsv1.Deployment, err error) {
			conditions := site.Status.ConditionManager(ctx)
			switch {
			case err != nil: // the name is in use, or the API server rejects the object
				conditions.MarkFalse(websitev1.ConditionDeploymentReady, string(apierrs.ReasonForError(err)), "%s", err)
			case child == nil:
				site.Status.ReadyReplicas = 0
				conditions.MarkTrue(websitev1.ConditionDeploymentReady, "NotWanted", "")
			default:
				site.Status.ReadyReplicas = child.Status.ReadyReplicas
				conditions.MarkUnknown(websitev1.ConditionDeploymentReady, "RollingOut", "")
			}
		},
	}
}

// endregion

func Example_child() {
	site := newSite()
	cluster := newCluster(site)
	reconcileOnce(cluster, DeploymentReconciler())
	reconcileOnce(cluster, DeploymentReconciler()) // nothing to do
	site = &websitev1.Website{}
	if err := cluster.Get(context.Background(), client.ObjectKeyFromObject(newSite()), site); err != nil {
		fmt.Println(err)
	}
	site.Spec.Replicas = new(int32(0))
	if err := cluster.Update(context.Background(), site); err != nil {
		fmt.Println(err)
	}
	reconcileOnce(cluster, DeploymentReconciler())
	// Output:
	// event: Normal Created: Created Deployment "bakery"
	// event: Normal Deleted: Deleted Deployment "bakery"
}

// An object of another owner with the name of the child is reflected and not adopted.
func Example_childNameIsTaken() {
	foreign := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "bakery", UID: "2"}}
	cluster := newCluster(newSite(), foreign)
	root := &reconcilers.ResourceReconciler[*websitev1.Website]{Reconciler: DeploymentReconciler(), Config: cluster}
	if _, err := root.Reconcile(context.Background(), requestFor(newSite())); err != nil {
		fmt.Println("error:", err)
	}
	site := newSite()
	if err := cluster.Get(context.Background(), client.ObjectKeyFromObject(site), site); err != nil {
		fmt.Println(err)
	}
	fmt.Println(site.Status.GetCondition(websitev1.ConditionDeploymentReady).Reason)
	// Output:
	// event: Warning CreationFailed: Failed to create Deployment "bakery": deployments.apps "bakery" already exists
	// event: Normal StatusUpdated: Updated status
	// AlreadyExists
}

// region children-set
const languageLabel = "demo.trueup.dev/language"

func LanguagesReconciler() reconcilers.SubReconciler[*websitev1.Website] {
	return &reconcilers.ChildSetReconciler[*websitev1.Website, *corev1.ConfigMap, *corev1.ConfigMapList]{
		DesiredChildren: func(_ context.Context, site *websitev1.Website) ([]*corev1.ConfigMap, error) {
			children := []*corev1.ConfigMap{}
			for _, language := range site.Spec.Languages {
				children = append(children, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
					Namespace: site.Namespace,
					Name:      site.Name + "-" + language.Code,
					Labels:    map[string]string{languageLabel: language.Code},
				}})
			}
			return children, nil
		},
		// Pairs desired and existing children. An existing child without a desired one is deleted.
		IdentifyChild: func(child *corev1.ConfigMap) string { return child.Labels[languageLabel] },
		// The site owns other ConfigMaps, too.
		OurChild: func(_ *websitev1.Website, child *corev1.ConfigMap) bool {
			return child.Labels[languageLabel] != ""
		},
		MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) { current.Data = desired.Data },
		ReflectChildrenStatusOnParent: func(
			_ context.Context, site *websitev1.Website, result reconcilers.ChildSetResult[*corev1.ConfigMap],
		) {
			site.Status.Languages = nil
			for _, child := range result.Children { // in the order of their ids
				if child.Child != nil && child.Err == nil {
					site.Status.Languages = append(site.Status.Languages, child.Id)
				}
			}
		},
	}
}

// endregion

func Example_childSet() {
	site := newSite()
	site.Spec.Languages = []websitev1.Language{{Code: "fr"}, {Code: "de"}}
	gone := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "bakery-it", Labels: map[string]string{
			languageLabel: "it",
		}, UID: "3", CreationTimestamp: metav1.Unix(1, 0),
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(site, websitev1.GroupVersion.WithKind("Website"))},
	}}
	reconcileOnce(newCluster(site, gone), LanguagesReconciler())
	// Output:
	// event: Normal Created: Created ConfigMap "bakery-de"
	// event: Normal Created: Created ConfigMap "bakery-fr"
	// event: Normal Deleted: Deleted ConfigMap "bakery-it"
}

// region children-elsewhere
func BackupReconciler() reconcilers.SubReconciler[*websitev1.Website] {
	return &reconcilers.ChildReconciler[*websitev1.Website, *corev1.ConfigMap, *corev1.ConfigMapList]{
		Name: "Backup",
		// Owner references do not cross namespaces: a finalizer ensures that the child is deleted with its parent.
		Finalizer: "demo.trueup.dev/backup",
		ListOptions: func(context.Context, *websitev1.Website) []client.ListOption {
			return []client.ListOption{client.InNamespace("backups")}
		},
		OurChild: func(site *websitev1.Website, child *corev1.ConfigMap) bool {
			return child.Name == site.Namespace+"."+site.Name
		},
		DesiredChild: func(_ context.Context, site *websitev1.Website) (*corev1.ConfigMap, error) {
			return &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: "backups", Name: site.Namespace + "." + site.Name},
			}, nil
		},
		MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) { current.Data = desired.Data },
		ReflectChildStatusOnParent: func(ctx context.Context, site *websitev1.Website, _ *corev1.ConfigMap, err error) {
			if err != nil { // the name is in use, or the API server rejects the object
				site.Status.ConditionManager(ctx).MarkFalse(
					websitev1.ConditionContentReady, string(apierrs.ReasonForError(err)), "%s", err,
				)
			}
		},
	}
}

// endregion

func Example_childElsewhere() {
	reconcileOnce(newCluster(newSite()), BackupReconciler())
	// Output:
	// event: Normal FinalizerPatched: Patched finalizer "demo.trueup.dev/backup"
	// event: Normal Created: Created ConfigMap "default.bakery"
}

// region children-immutable
func TokenReconciler() reconcilers.SubReconciler[*websitev1.Website] {
	return &reconcilers.ChildReconciler[*websitev1.Website, *corev1.Secret, *corev1.SecretList]{
		Name: "Token",
		DesiredChild: func(_ context.Context, site *websitev1.Website) (*corev1.Secret, error) {
			return &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: site.Namespace, Name: site.Name + "-token"},
				Type:       "demo.trueup.dev/token", // an earlier version wrote Opaque
				Data:       map[string][]byte{"domain": []byte(site.Spec.Domain)},
			}, nil
		},
		HarmonizeImmutableFields: func(current, desired *corev1.Secret) {
			desired.Type = current.Type // the API server rejects changes of it
		},
		MergeBeforeUpdate: func(current, desired *corev1.Secret) {
			current.Type, current.Data = desired.Type, desired.Data
		},
		ReflectChildStatusOnParentWithError: func(
			_ context.Context, _ *websitev1.Website, _ *corev1.Secret, err error,
		) error {
			return err
		},
	}
}

// endregion

// region children-optional
func AdvertReconciler() reconcilers.SubReconciler[*websitev1.Website] {
	return &reconcilers.ChildReconciler[*websitev1.Website, *corev1.ConfigMap, *corev1.ConfigMapList]{
		Name: "Advert",
		DesiredChild: func(_ context.Context, site *websitev1.Website) (*corev1.ConfigMap, error) {
			if site.Annotations["demo.trueup.dev/advertised"] != "true" {
				return nil, nil // an existing child is deleted
			}
			return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: site.Namespace, Name: site.Name + "-advert"}}, nil
		},
		MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) { current.Data = desired.Data },
		ReflectChildStatusOnParentWithError: func(
			_ context.Context, _ *websitev1.Website, _ *corev1.ConfigMap, err error,
		) error {
			return err
		},
	}
}

// endregion

// setAdvertised sets the condition of the examples below.
func setAdvertised(cluster reconcilers.Config, value string) {
	site := newSite()
	err := cluster.Get(context.Background(), client.ObjectKeyFromObject(site), site)
	if err == nil {
		site.Annotations = map[string]string{"demo.trueup.dev/advertised": value}
		err = cluster.Update(context.Background(), site)
	}
	if err != nil {
		fmt.Println(err)
	}
}

// region children-adopt
func AdoptingReconciler() reconcilers.SubReconciler[*websitev1.Website] {
	pages := PagesReconciler().(*reconcilers.ChildReconciler[*websitev1.Website, *corev1.ConfigMap, *corev1.ConfigMapList])
	pages.Adopt = func(_ context.Context, site *websitev1.Website, existing *corev1.ConfigMap) bool {
		return existing.Annotations["websites.example.com/adopt-by"] == site.Name
	}
	pages.Release = func(_ context.Context, _ *websitev1.Website, child *corev1.ConfigMap) bool {
		return child.Annotations["websites.example.com/keep"] == "true"
	}
	return pages
}

// endregion

func Example_adopt() {
	existing := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "bakery-pages", CreationTimestamp: metav1.Unix(1, 0),
		Annotations: map[string]string{"websites.example.com/adopt-by": "bakery"},
	}}
	cluster := newCluster(newSite(), existing)
	reconcileOnce(cluster, reconcilers.Sequence[*websitev1.Website]{RenderReconciler(), AdoptingReconciler()})
	// Output:
	// event: Normal Adopted: Adopted ConfigMap "bakery-pages"
	// event: Normal Updated: Updated ConfigMap "bakery-pages"
}

func Example_optionalChild() {
	cluster := newCluster(newSite())
	for _, advertised := range []string{"true", "false"} {
		setAdvertised(cluster, advertised)
		reconcileOnce(cluster, AdvertReconciler())
	}
	// Output:
	// event: Normal Created: Created ConfigMap "bakery-advert"
	// event: Normal Deleted: Deleted ConfigMap "bakery-advert"
}

// The child is not deleted when the condition becomes false: this is the trap.
func Example_childBelowIfThen() {
	r := &reconcilers.IfThen[*websitev1.Website]{
		If: func(_ context.Context, site *websitev1.Website) bool {
			return site.Annotations["demo.trueup.dev/advertised"] == "true"
		},
		Then: AdvertReconciler(),
	}
	cluster := newCluster(newSite())
	for _, advertised := range []string{"true", "false"} {
		setAdvertised(cluster, advertised)
		reconcileOnce(cluster, r)
	}
	// Output:
	// event: Normal Created: Created ConfigMap "bakery-advert"
}

func Example_immutableField() {
	before := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "bakery-token", UID: "s-1", CreationTimestamp: metav1.Unix(1, 0),
		OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(newSite(), websitev1.GroupVersion.WithKind("Website")),
		},
	}, Type: corev1.SecretTypeOpaque}
	cluster := newCluster(newSite(), before)
	reconcileOnce(cluster, TokenReconciler())
	if err := cluster.Get(context.Background(), client.ObjectKeyFromObject(before), before); err != nil {
		fmt.Println(err)
	}
	fmt.Printf("%s %s\n", before.Type, before.Data)
	// Output:
	// event: Normal Updated: Updated Secret "bakery-token"
	// Opaque map[domain:bakery.example.com]
}

// region children-manager
// One strategy for all ConfigMaps of this controller.
var configMaps = &reconcilers.UpdatingObjectManager[*corev1.ConfigMap]{
	HarmonizeImmutableFields: func(current, desired *corev1.ConfigMap) {
		desired.Immutable = current.Immutable // the API server rejects changes of it
	},
	MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) {
		current.Labels, current.Data = desired.Labels, desired.Data
	},
	Sanitize: func(child *corev1.ConfigMap) any {
		return len(child.Data) // the only value that is logged
	},
}

// endregion

func Example_objectManager() {
	child := &reconcilers.ChildReconciler[*websitev1.Website, *corev1.ConfigMap, *corev1.ConfigMapList]{
		// region children-manager-use
		ChildObjectManager: configMaps,
		// endregion
		DesiredChild: func(_ context.Context, site *websitev1.Website) (*corev1.ConfigMap, error) {
			return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: site.Namespace, Name: site.Name}}, nil
		},
		ReflectChildStatusOnParent: func(ctx context.Context, site *websitev1.Website, _ *corev1.ConfigMap, err error) {
			if err != nil { // the name is in use, or the API server rejects the object
				site.Status.ConditionManager(ctx).MarkFalse(
					websitev1.ConditionContentReady, string(apierrs.ReasonForError(err)), "%s", err,
				)
			}
		},
	}
	reconcileOnce(newCluster(newSite()), child)
	// Output:
	// event: Normal Created: Created ConfigMap "bakery"
}

func adoptNone() {
	child := &reconcilers.ChildReconciler[*websitev1.Website, *corev1.ConfigMap, *corev1.ConfigMapList]{}
	// region children-pause
	child.DesiredChild = func(_ context.Context, site *websitev1.Website) (*corev1.ConfigMap, error) {
		if site.Annotations["demo.trueup.dev/paused"] == "true" {
			return nil, reconcilers.OnlyReconcileChildStatus // do not change it, but still reflect it
		}
		return desiredConfigMap(site), nil
	}
	// endregion
}

func desiredConfigMap(site *websitev1.Website) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: site.Namespace, Name: site.Name}}
}

var _ = adoptNone
