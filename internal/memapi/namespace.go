// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var namespaceKind = corev1.SchemeGroupVersion.WithKind("Namespace")

// initialNamespaces exist from the start. Only the last one can be deleted.
var initialNamespaces = []string{"default", "kube-node-lease", "kube-public", "kube-system"}

// immortal reports whether a namespace cannot be deleted.
func immortal(name string) bool {
	return name == metav1.NamespaceDefault || name == metav1.NamespaceSystem || name == metav1.NamespacePublic
}

func isNamespace(t *table) bool {
	return t.kind.GroupVersionKind == namespaceKind
}

// createNamespaces adds the initial namespaces to the table, but not to the history.
func (s *Server) createNamespaces(t *table) {
	for _, name := range initialNamespaces {
		key := client.ObjectKey{Name: name}
		ns := &corev1.Namespace{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, UID: s.newUID(t, key), ResourceVersion: "1", CreationTimestamp: seconds(s.now()),
				Labels: map[string]string{corev1.LabelMetadataName: name},
			},
			Spec:   corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{corev1.FinalizerKubernetes}},
			Status: corev1.NamespaceStatus{Phase: corev1.NamespaceActive},
		}
		var obj client.Object = ns
		if t.goType == nil {
			obj = &unstructured.Unstructured{Object: contentOf(ns, namespaceKind, false)}
		}
		r := &record{table: t, key: key, object: obj, uid: ns.UID, version: 1}
		t.objects[key], t.sorted = r, append(t.sorted, r)
	}
}

// admitToNamespace refuses to create objects in namespaces that do not exist or are being deleted.
func (s *Server) admitToNamespace(t *table, obj client.Object) error {
	namespaces := s.tables[namespaceKind]
	if namespaces == nil || !t.kind.Namespaced { // the scheme has no namespaces, or the kind is not namespaced
		return nil
	}
	name := obj.GetNamespace()
	r := namespaces.objects[types.NamespacedName{Name: name}]
	if r == nil {
		return namespaces.notFound(name)
	}
	if namespacePhase(r.object) != corev1.NamespaceTerminating {
		return nil
	}
	objName := obj.GetName()
	if objName == "" {
		objName = "Unknown"
		if prefix := obj.GetGenerateName(); prefix != "" {
			objName = prefix
		}
	}
	err := apierrors.NewForbidden(
		t.resource, objName, fmt.Errorf("unable to create new content in namespace %s because it is being terminated", name),
	)
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
		Type: corev1.NamespaceTerminatingCause, Message: fmt.Sprintf("namespace %s is being terminated", name),
		Field: "metadata.namespace",
	})
	return err
}

// admitDelete refuses to delete namespaces that a cluster needs.
func (t *table) admitDelete(key client.ObjectKey) error {
	if isNamespace(t) && t.objects[key] != nil && immortal(key.Name) {
		return apierrors.NewForbidden(t.resource, key.Name, fmt.Errorf("this namespace may not be deleted"))
	}
	return nil
}

// terminate starts the deletion of a namespace, and reports whether the namespace must be kept until its finalizers are
// removed.
func (s *Server) terminate(t *table, r *record, by string, opts *metav1.DeleteOptions) (done bool, err error) {
	if err := t.matchDeletion(r, opts.Preconditions, "Precondition failed"); err != nil {
		return true, err
	}
	if r.object.GetDeletionTimestamp() != nil {
		return len(namespaceFinalizers(r.object)) > 0, nil
	}
	obj := r.object.DeepCopyObject().(client.Object)
	obj.SetDeletionTimestamp(new(seconds(s.now())))
	setNamespacePhase(obj, corev1.NamespaceTerminating)
	obj.SetFinalizers(t.namespaceDeletionFinalizers(obj.GetFinalizers(), opts))
	if len(opts.DryRun) == 0 {
		s.put(t, r.key, obj, r.request(by))
	}
	return true, nil
}

// matchDeletion returns a conflict, whose message begins with a text, if an object does not match the preconditions of
// its deletion.
func (t *table) matchDeletion(r *record, p *metav1.Preconditions, text string) error {
	conflict := func(field, wanted, found string) error {
		return apierrors.NewConflict(t.resource, r.key.Name, fmt.Errorf(
			"%s: %[2]s in precondition: %[3]s, %[2]s in object meta: %[4]s", text, field, wanted, found,
		))
	}
	switch version := r.object.GetResourceVersion(); {
	case p == nil:
	case p.UID != nil && *p.UID != r.uid:
		return conflict("UID", string(*p.UID), string(r.uid))
	case p.ResourceVersion != nil && *p.ResourceVersion != version:
		return conflict("ResourceVersion", *p.ResourceVersion, version)
	}
	return nil
}

// namespaceDeletionFinalizers is deletionFinalizers for namespaces, which treat the deprecated option differently.
func (t *table) namespaceDeletionFinalizers(found []string, opts *metav1.DeleteOptions) []string {
	wanted := map[string]bool{
		metav1.FinalizerOrphanDependents: slices.Contains(found, metav1.FinalizerOrphanDependents),
		metav1.FinalizerDeleteDependents: slices.Contains(found, metav1.FinalizerDeleteDependents),
	}
	if orphan := opts.OrphanDependents; orphan != nil { //nolint:staticcheck // deprecated, but still supported
		wanted[metav1.FinalizerOrphanDependents], wanted[metav1.FinalizerDeleteDependents] = *orphan, !*orphan
	} else if policy := opts.PropagationPolicy; policy != nil {
		wanted[metav1.FinalizerOrphanDependents] = *policy == metav1.DeletePropagationOrphan
		wanted[metav1.FinalizerDeleteDependents] = *policy == metav1.DeletePropagationForeground
	}
	var finalizers []string
	for _, f := range found {
		if keep, special := wanted[f]; keep || !special {
			finalizers = append(finalizers, f)
		}
	}
	for _, f := range []string{metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents} {
		if wanted[f] && !slices.Contains(finalizers, f) {
			finalizers = append(finalizers, f)
		}
	}
	return finalizers
}

func namespacePhase(obj client.Object) corev1.NamespacePhase {
	if ns, ok := obj.(*corev1.Namespace); ok {
		return ns.Status.Phase
	}
	phase, _, _ := unstructured.NestedString(obj.(*unstructured.Unstructured).Object, "status", "phase")
	return corev1.NamespacePhase(phase)
}

func setNamespacePhase(obj client.Object, phase corev1.NamespacePhase) {
	if ns, ok := obj.(*corev1.Namespace); ok {
		ns.Status.Phase = phase
		return
	}
	_ = unstructured.SetNestedField(obj.(*unstructured.Unstructured).Object, string(phase), "status", "phase")
}

func namespaceFinalizers(obj client.Object) []corev1.FinalizerName {
	if ns, ok := obj.(*corev1.Namespace); ok {
		return ns.Spec.Finalizers
	}
	texts, _, _ := unstructured.NestedStringSlice(obj.(*unstructured.Unstructured).Object, "spec", "finalizers")
	var finalizers []corev1.FinalizerName
	for _, text := range texts {
		finalizers = append(finalizers, corev1.FinalizerName(text))
	}
	return finalizers
}

func clearNamespaceFinalizers(obj client.Object) {
	if ns, ok := obj.(*corev1.Namespace); ok {
		ns.Spec.Finalizers = nil
		return
	}
	unstructured.RemoveNestedField(obj.(*unstructured.Unstructured).Object, "spec", "finalizers")
}
