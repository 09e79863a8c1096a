// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"context"
	"fmt"
	"log"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/sandbox"
	_ "trueup.dev/sandbox/memory"
)

func Example() {
	ctx := context.Background()
	s, err := sandbox.Start(ctx, sandbox.Options{Backend: sandbox.Memory})
	if err != nil {
		log.Fatal(err)
	}
	defer func() {
		if err := s.Stop(); err != nil {
			log.Print(err)
		}
	}()
	c, err := client.New(s.RESTConfig(), client.Options{})
	if err != nil {
		log.Print(err)
		return
	}
	var namespaces corev1.NamespaceList
	if err := c.List(ctx, &namespaces); err != nil {
		log.Print(err)
		return
	}
	for _, namespace := range namespaces.Items {
		fmt.Println(namespace.Name)
	}
	// Output:
	// default
	// kube-node-lease
	// kube-public
	// kube-system
}
