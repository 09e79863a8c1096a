// SPDX-License-Identifier: Apache-2.0

package memapi_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/memapi"
	"trueup.dev/internal/memapi/apply"
	"trueup.dev/internal/memapi/kinds"
)

func Example() {
	// All servers can share these.
	registry, err := kinds.NewRegistry(clientgoscheme.Scheme)
	if err != nil {
		panic(err)
	}
	applier := apply.New(registry)

	server := memapi.New(memapi.Options{Registry: registry, Applier: applier, Seed: 1})
	c := server.Client("my-controller")
	ctx := context.Background()

	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "owner"}}
	fmt.Println("create:", c.Create(ctx, owner))
	fmt.Println(
		"create again:", c.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "owner"}}),
	)
	owned := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "owned", OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID},
		},
	}}
	fmt.Println("create another:", c.Create(ctx, owned))
	fmt.Println("delete:", c.Delete(ctx, owner, client.Preconditions{UID: &owner.UID}))
	for _, garbage := range server.Garbage() {
		fmt.Println("collect:", garbage.Type, garbage.Kind.Kind, garbage.Key, server.Collect(garbage))
	}
	for _, event := range server.Events(0) {
		fmt.Println(event.Version, event.Type, event.Kind.Kind, event.Key)
	}

	// Output:
	// create: <nil>
	// create again: configmaps "owner" already exists
	// create another: <nil>
	// delete: <nil>
	// collect: delete Secret default/owned <nil>
	// 2 ADDED ConfigMap default/owner
	// 3 ADDED Secret default/owned
	// 4 DELETED ConfigMap default/owner
	// 5 DELETED Secret default/owned
}
