// SPDX-License-Identifier: Apache-2.0

package fakeapi

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

// realism does to written objects what a server does and a tracker does not.
type realism struct {
	scheme *runtime.Scheme
	// withStatus are the kinds that have a status subresource.
	withStatus sets.Set[schema.GroupVersionKind]
	// uids counts created objects. UIDs derive from it, so that they are the same in each run of a test.
	uids atomic.Int64
	// now is the time of the current call.
	now atomic.Pointer[time.Time]
}

func newRealism(o Options) *realism {
	r := &realism{scheme: o.Scheme, withStatus: kindsWithStatus.Clone()}
	for _, obj := range o.StatusSubresources {
		if gvk, err := apiutil.GVKForObject(obj, o.Scheme); err == nil {
			r.withStatus.Insert(gvk)
		}
	}
	return r
}

// time returns the creation or deletion time of the current call, in seconds as servers store it.
func (r *realism) time() metav1.Time {
	if now := r.now.Load(); now != nil {
		return metav1.NewTime(now.Truncate(time.Second))
	}
	return metav1.NewTime(time.Now().Truncate(time.Second))
}

// given sets the generation that a server would have set on a given object.
func (r *realism) given(obj runtime.Object) {
	accessor, err := meta.Accessor(obj)
	if gvk, kindErr := apiutil.GVKForObject(obj, r.scheme); err == nil && kindErr == nil &&
		accessor.GetGeneration() == 0 && r.hasGeneration(gvk) {
		accessor.SetGeneration(1)
	}
}

// PredictableUID returns the UID of the n-th object that is created in a realistic API.
func PredictableUID(n int64) types.UID {
	return types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012d", n))
}

// created changes a created object to what a server stores.
func (r *realism) created(s *store, gvr schema.GroupVersionResource, obj runtime.Object, ns string) error {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	if _, err := s.Get(gvr, ns, accessor.GetName()); !apierrs.IsNotFound(err) {
		// it already exists, and the object of the caller must not be changed
		return err
	}
	gvk, err := apiutil.GVKForObject(obj, r.scheme)
	if err != nil {
		return err
	}
	if r.withStatus.Has(gvk) {
		removeStatus(obj)
	}
	accessor.SetUID(PredictableUID(r.uids.Add(1)))
	accessor.SetCreationTimestamp(r.time())
	accessor.SetDeletionTimestamp(nil)
	accessor.SetGeneration(0)
	if r.hasGeneration(gvk) {
		accessor.SetGeneration(1)
	}
	return nil
}

// updated changes an updated object to what a server stores. It reports whether this equals the stored object. The
// changed fields belong to the manager, which is nil if the object has its managed fields already.
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

// desired returns the fields whose changes increase the generation.
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

// stored returns a copy of the stored object.
func (r *realism) stored(s *store, obj client.Object) (runtime.Object, error) {
	gvk, err := apiutil.GVKForObject(obj, r.scheme)
	if err != nil {
		return nil, err
	}
	gvr, _ := meta.UnsafeGuessKindToResource(gvk)
	return s.Get(gvr, obj.GetNamespace(), obj.GetName())
}
