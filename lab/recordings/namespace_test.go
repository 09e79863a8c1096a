// SPDX-License-Identifier: Apache-2.0

package recordings

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// movedClient moves requests for objects in the default namespace, where the objects of the corpus are, to another one.
type movedClient struct {
	client.Client
	namespace string
}

func (c movedClient) key(key client.ObjectKey) client.ObjectKey {
	if key.Namespace == metav1.NamespaceDefault {
		key.Namespace = c.namespace
	}
	return key
}

func (c movedClient) move(obj client.Object) client.Object {
	obj.SetNamespace(c.key(client.ObjectKeyFromObject(obj)).Namespace)
	return obj
}

func (c movedClient) Get(ctx context.Context, key client.ObjectKey, obj client.Object, o ...client.GetOption) error {
	return c.Client.Get(ctx, c.key(key), obj, o...)
}

func (c movedClient) Create(ctx context.Context, obj client.Object, o ...client.CreateOption) error {
	return c.Client.Create(ctx, c.move(obj), o...)
}

func (c movedClient) Update(ctx context.Context, obj client.Object, o ...client.UpdateOption) error {
	return c.Client.Update(ctx, c.move(obj), o...)
}

func (c movedClient) Patch(ctx context.Context, obj client.Object, p client.Patch, o ...client.PatchOption) error {
	return c.Client.Patch(ctx, c.move(obj), p, o...)
}

func (c movedClient) Delete(ctx context.Context, obj client.Object, o ...client.DeleteOption) error {
	return c.Client.Delete(ctx, c.move(obj), o...)
}
