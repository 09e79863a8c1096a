// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// collector is the name of the garbage collector, as client and as field manager.
const collector = "kube-controller-manager"

// Collect executes a step that Garbage has returned, now or earlier. It does nothing if the object no longer exists or
// has another UID. Errors are those of a request; the step can be repeated.
func (s *Server) Collect(c Collection) error {
	t := s.tables[c.Kind]
	if t == nil || t.objects[c.Key] == nil || t.objects[c.Key].uid != c.UID {
		return nil
	}
	var err error
	switch c.Type {
	case DeleteOrphan, DeleteContent:
		err = s.delete(t, c.Key, collector, &metav1.DeleteOptions{
			PropagationPolicy: &c.policy, Preconditions: &metav1.Preconditions{UID: &c.UID},
		})
	case DropOwners, Release:
		err = s.edit(t, c, func(obj client.Object) {
			obj.SetOwnerReferences(slices.DeleteFunc(slices.Clone(obj.GetOwnerReferences()), func(
				ref metav1.OwnerReference,
			) bool {
				return slices.Contains(c.owners, ref.UID)
			}))
		})
	case Unblock:
		err = s.edit(t, c, func(obj client.Object) {
			refs := slices.Clone(obj.GetOwnerReferences())
			for i := range refs {
				if blocks(refs[i]) {
					refs[i].BlockOwnerDeletion = new(false)
				}
			}
			obj.SetOwnerReferences(refs)
		})
	case FinishDeletion:
		err = s.edit(t, c, func(obj client.Object) {
			obj.SetFinalizers(slices.DeleteFunc(slices.Clone(obj.GetFinalizers()), func(f string) bool {
				return f == metav1.FinalizerOrphanDependents || f == metav1.FinalizerDeleteDependents
			}))
		})
	case FinishNamespace:
		s.finalize(t, c)
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// edit changes the metadata of an object.
func (s *Server) edit(t *table, c Collection, change func(client.Object)) error {
	req := request{client: collector, manager: collector}
	_, err := s.update(t, c.Key, c.UID, req, func(r *record) (client.Object, error) {
		obj := r.object.DeepCopyObject().(client.Object)
		change(obj)
		return s.manage(t, r, obj, req)
	})
	return err
}

// finalize removes the finalizer of a namespace, and thereby the namespace.
func (s *Server) finalize(t *table, c Collection) {
	r := t.objects[c.Key]
	if len(r.object.GetFinalizers()) == 0 {
		s.remove(t, r, collector)
		return
	}
	obj := r.object.DeepCopyObject().(client.Object)
	clearNamespaceFinalizers(obj)
	s.put(t, c.Key, obj, r.request(collector))
}
