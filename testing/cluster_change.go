// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// changeCall makes a call that changes an object, with the resource version to send. Rebase adds what others have
// written to it to what the case sends.
type changeCall func(
	version string, rebase func(sent *unstructured.Unstructured),
) (changed *unstructured.Unstructured, err error)

// change has a call change an object of the case, and returns what has become of it. Sent is the resource version that
// the case has sent, empty for none.
//
// What others have written to the object is hidden from the case. So their writes must not make its calls fail, be
// undone by them, or come back with what the server returns.
func (a *clusterAPI) change(
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

// catchUp returns an object as the cluster would have it without the writes of others, the version to send for the one
// that the case has sent, and whether that is the current one.
func (a *clusterAPI) catchUp(rec *record, live *unstructured.Unstructured, sent string) (
	known *unstructured.Unstructured, version string, isCurrent bool,
) {
	a.lock.Lock()
	defer a.lock.Unlock()
	rec.noteForeignWrite(live)
	// The versions of others are no versions for the case.
	rec.versions[len(rec.versions)-1].real = live.GetResourceVersion()
	rec.generation += live.GetGeneration() - rec.known.GetGeneration()
	rec.known.SetGeneration(live.GetGeneration())
	known = rec.known
	if live.GroupVersionKind() != rec.kind {
		// There is nothing to tell their writes by.
		known = live
	}
	if isCurrent = sent == "" || sent == rec.current().shown; isCurrent {
		return known.DeepCopy(), live.GetResourceVersion(), true
	}
	return known.DeepCopy(), rec.realVersion(sent), false
}
