// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"fmt"
	"maps"
	"reflect"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// realism is what a server does with objects that are written, and a tracker does not.
type realism struct {
	scheme *runtime.Scheme
	// withStatus are the kinds whose status is a sub resource.
	withStatus sets.Set[schema.GroupVersionKind]
	// uids counts objects, to give them a uid that is the same each time a test runs.
	uids atomic.Int64
	// now is the time of the call in progress.
	now atomic.Pointer[time.Time]
}

func newRealism(o fakeOptions) *realism {
	r := &realism{scheme: o.scheme, withStatus: kindsWithStatus.Clone()}
	for _, obj := range o.statusSubResources {
		if gvk, err := apiutil.GVKForObject(obj, o.scheme); err == nil {
			r.withStatus.Insert(gvk)
		}
	}
	return r
}

// time returns the time of objects that are created or deleted now. Servers tell it to the second.
func (r *realism) time() metav1.Time {
	if now := r.now.Load(); now != nil {
		return metav1.NewTime(now.Truncate(time.Second))
	}
	return metav1.NewTime(time.Now().Truncate(time.Second))
}

// given makes an object one that a server has stored.
func (r *realism) given(obj runtime.Object) {
	accessor, err := meta.Accessor(obj)
	if gvk, kindErr := apiutil.GVKForObject(obj, r.scheme); err == nil && kindErr == nil &&
		accessor.GetGeneration() == 0 && r.hasGeneration(gvk) {
		accessor.SetGeneration(1)
	}
}

// predictableUID formats the uid of an object that is created, from the number of those before.
const predictableUID = "00000000-0000-0000-0000-%012d"

// created changes an object to what a server stores when it is created.
func (r *realism) created(s *store, gvr schema.GroupVersionResource, obj runtime.Object, ns string) error {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	if _, err := s.Get(gvr, ns, accessor.GetName()); !apierrs.IsNotFound(err) {
		// it exists already, and the object of the caller is not changed
		return err
	}
	gvk, err := apiutil.GVKForObject(obj, r.scheme)
	if err != nil {
		return err
	}
	if r.withStatus.Has(gvk) {
		removeStatus(obj)
	}
	accessor.SetUID(types.UID(fmt.Sprintf(predictableUID, r.uids.Add(1))))
	accessor.SetCreationTimestamp(r.time())
	accessor.SetDeletionTimestamp(nil)
	accessor.SetGeneration(0)
	if r.hasGeneration(gvk) {
		accessor.SetGeneration(1)
	}
	return nil
}

// updated changes an object to what a server stores when it is updated. It returns true if that is what is stored
// already. The manager is that of the fields that change, nil if the object tells it.
func (r *realism) updated(
	s *store, gvr schema.GroupVersionResource, obj runtime.Object, ns string, manager *string,
) (unchanged bool, err error) {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return false, err
	}
	stored, err := s.Get(gvr, ns, accessor.GetName())
	if err != nil {
		return false, err
	}
	live, err := meta.Accessor(stored)
	if err != nil {
		return false, err
	}
	gvk, err := apiutil.GVKForObject(obj, r.scheme)
	if err != nil {
		return false, err
	}

	if uid := accessor.GetUID(); uid != "" && uid != live.GetUID() {
		return false, apierrs.NewConflict(gvr.GroupResource(), accessor.GetName(),
			fmt.Errorf("uid %s is not that of the stored object, %s", uid, live.GetUID()))
	}
	accessor.SetUID(live.GetUID())
	accessor.SetCreationTimestamp(live.GetCreationTimestamp())
	accessor.SetGeneration(live.GetGeneration())
	deleted := accessor.GetDeletionTimestamp() != nil && live.GetDeletionTimestamp() == nil
	if deleted {
		now := r.time()
		accessor.SetDeletionTimestamp(&now)
		accessor.SetDeletionGracePeriodSeconds(new(int64(0)))
	} else {
		accessor.SetDeletionTimestamp(live.GetDeletionTimestamp())
		accessor.SetDeletionGracePeriodSeconds(live.GetDeletionGracePeriodSeconds())
	}
	before, err := untyped(stored, gvk)
	if err != nil {
		return false, err
	}
	after, err := untyped(obj, gvk)
	if err != nil {
		return false, err
	}
	if r.hasGeneration(gvk) && (deleted || !equality.Semantic.DeepEqual(desired(before), desired(after))) {
		accessor.SetGeneration(live.GetGeneration() + 1)
	}
	after.SetResourceVersion(live.GetResourceVersion())
	if equality.Semantic.DeepEqual(before.Object, after.Object) {
		accessor.SetResourceVersion(live.GetResourceVersion())
		return true, nil
	}
	if manager == nil {
		return false, nil
	}
	return false, r.own(before, after, accessor, *manager)
}

// desired returns what of an object moves the generation.
func desired(obj *unstructured.Unstructured) map[string]any {
	content := maps.Clone(obj.Object)
	delete(content, "metadata")
	delete(content, "status")
	return content
}

// removeStatus sets the status of an object to its zero value.
func removeStatus(obj runtime.Object) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		delete(u.Object, "status")
		return
	}
	if status := reflect.ValueOf(obj).Elem().FieldByName("Status"); status.IsValid() {
		status.SetZero()
	}
}

// stored returns a copy of an object as it is stored.
func (r *realism) stored(s *store, obj client.Object) (runtime.Object, error) {
	gvk, err := apiutil.GVKForObject(obj, r.scheme)
	if err != nil {
		return nil, err
	}
	gvr, _ := meta.UnsafeGuessKindToResource(gvk)
	return s.Get(gvr, obj.GetNamespace(), obj.GetName())
}
