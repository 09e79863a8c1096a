// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"trueup.dev/controlplane"
)

// A temporary control plane.
func ExampleStart() {
	ctx := context.Background()
	cp, err := controlplane.Start(ctx, controlplane.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer cp.Stop()

	client, err := kubernetes.NewForConfig(cp.RESTConfig())
	if err != nil {
		log.Print(err)
		return
	}
	namespaces, err := client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil {
		log.Print(err)
		return
	}
	for _, namespace := range namespaces.Items {
		fmt.Println(namespace.Name)
	}
}

// A control plane with flags of kube-apiserver, the APIs of an older minor version, and an audit log.
func ExampleOptions() {
	cp, err := controlplane.Start(context.Background(), controlplane.Options{
		APIServerArgs:   []string{"feature-gates=WatchList=false", "enable-admission-plugins=AlwaysPullImages"},
		EmulatedVersion: "1.36",
		AuditLog:        "audit.jsonl",
	})
	if err != nil {
		log.Fatal(err)
	}
	defer cp.Stop()
	fmt.Println(cp.URL())
}

// A control plane that keeps its data and runs until it is interrupted, with the garbage collector only.
func ExampleRun() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := controlplane.Run(ctx, controlplane.Options{
		Dir:         "data",
		Port:        6443,
		Controllers: []string{"garbage-collector-controller"},
		DisablePods: true,
	}, func(cp *controlplane.ControlPlane) error {
		_, err := fmt.Println("ready:", cp.URL(), cp.Kubeconfig())
		return err
	})
	stop()
	if err != nil {
		log.Fatal(err)
	}
}
