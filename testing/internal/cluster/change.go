// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// changeCall changes an object. It must send the given resource version. The rebase function adds the writes of other
// clients to the object that the case sends.
type changeCall func(
	version string, rebase func(sent *unstructured.Unstructured),
) (changed *unstructured.Unstructured, err error)

// change calls a function that changes an object of the case, and returns the changed object. Sent is the resource
// version that the case sent, empty for none.
//
// The writes of other clients to the object are hidden from the case. They must not make its calls fail, must not be
// undone by them, and must not be part of their result.
func (a *API) change(
	ctx context.Context, rec *record, kind schema.GroupVersionKind, sent string, call changeCall,
) (*unstructured.Unstructured, error) {
	for previous := ""; ; {
		live := newUnstructured(kind, rec.id.namespace, rec.id.name)
		if err := a.real.Get(ctx, client.ObjectKeyFromObject(live), live); err != nil {
			return nil, err
		}
		if live.GetUID() != rec.uid {
			return nil, a.notFound(kind, rec.id.name)
		}
		known, version, isCurrent := a.catchUp(rec, live, sent)
		hidden := !equality.Semantic.DeepEqual(content(live), content(known))
		changed, err := call(version, func(u *unstructured.Unstructured) {
			if hidden {
				setContent(u, mergeChanges(content(known), content(live), content(u)))
			}
		})
		if apierrs.IsConflict(err) && isCurrent && version != previous {
			previous = version
			continue
		}
		if err != nil {
			return nil, err
		}
		if hidden {
			setContent(changed, mergeChanges(content(live), content(known), content(changed)))
		}
		return changed, nil
	}
}

// catchUp returns the object without the writes of other clients, the resource version to send for the one that the
// case sent, and whether that is the current one.
func (a *API) catchUp(rec *record, live *unstructured.Unstructured, sent string) (
	known *unstructured.Unstructured, version string, isCurrent bool,
) {
	a.lock.Lock()
	defer a.lock.Unlock()
	rec.noteForeignWrite(live)
	// the writes of other clients are not versions for the case
	rec.versions[len(rec.versions)-1].real = live.GetResourceVersion()
	rec.generation += live.GetGeneration() - rec.known.GetGeneration()
	rec.known.SetGeneration(live.GetGeneration())
	known = rec.known
	if live.GroupVersionKind() != rec.kind {
		// in another version of the API, the writes of other clients cannot be distinguished
		known = live
	}
	if isCurrent = sent == "" || sent == rec.current().shown; isCurrent {
		return known.DeepCopy(), live.GetResourceVersion(), true
	}
	return known.DeepCopy(), rec.realVersion(sent), false
}
