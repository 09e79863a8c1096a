// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"context"
	"errors"
	"slices"
	"testing"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/objects/empty"
)

// noteTaken records the object that an AlreadyExists error names. Reconcilers of children read that object.
func (w *clientWrapper) noteTaken(obj client.Object, err error) {
	gvk, kindErr := w.client.GroupVersionKindFor(obj)
	if kindErr != nil {
		return
	}
	taken := &unstructured.Unstructured{}
	taken.SetGroupVersionKind(gvk)
	taken.SetNamespace(obj.GetNamespace())
	taken.SetName(obj.GetName())
	if status := apierrs.APIStatus(nil); errors.As(err, &status) {
		if details := status.Status().Details; details != nil && details.Name != "" {
			taken.SetName(details.Name)
		}
	}
	w.lock.Lock()
	defer w.lock.Unlock()
	if !slices.ContainsFunc(w.taken, func(other client.Object) bool { return sameTarget(other, taken) }) {
		w.taken = append(w.taken, taken)
	}
}

func sameTarget(a, b client.Object) bool {
	return client.ObjectKeyFromObject(a) == client.ObjectKeyFromObject(b) &&
		a.GetObjectKind().GroupVersionKind() == b.GetObjectKind().GroupVersionKind()
}

// explainMissingBlockers logs which existing objects have prevented a create and cannot be read. A ChildReconciler
// then returns the error, and does not pass it to ReflectChildStatusOnParent.
func (c *ExpectConfig) explainMissingBlockers(t *testing.T) {
	t.Helper()
	for _, obj := range c.actions().taken {
		key := client.ObjectKeyFromObject(obj)
		found := empty.Like(obj)
		if err := c.Config().APIReader.Get(context.Background(), key, found); !apierrs.IsNotFound(err) {
			continue
		}
		t.Logf("create failed with AlreadyExists%s, and the APIReader does not find %s: a reconciler of children then "+
			"returns the error, for a retry, instead of reflecting it. Add the existing object to APIGivenObjects.",
			c.configName(), target(obj.GetObjectKind().GroupVersionKind().GroupKind(), "", key.Namespace, key.Name))
	}
}
