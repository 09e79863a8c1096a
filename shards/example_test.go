// SPDX-License-Identifier: Apache-2.0

package shards_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/shards"
)

// A manager that caches the ConfigMaps of its shard and all other objects.
func ExampleShard_ManagerOptions() {
	shard, err := shards.New(shards.Options{
		Ring: "configs", Shard: "configs-7d9f-x2x5k", Namespace: "default", Kinds: []client.Object{&corev1.ConfigMap{}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	options, err := shard.ManagerOptions(&rest.Config{}, ctrl.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("Lease:", options.LeaderElectionResourceLockInterface.Describe())
	for kind, of := range options.Cache.ByObject {
		fmt.Printf("%T: %s\n", kind, of.Label)
	}
	// Output:
	// Lease: default/configs-7d9f-x2x5k
	// *v1.ConfigMap: shard.alpha.sharding.timebertt.dev/configs=configs-7d9f-x2x5k
}

// The error lists all problems.
func ExampleNew() {
	_, err := shards.New(shards.Options{Shard: "configs-7d9f-x2x5k", Namespace: "default"})
	fmt.Println(err)
	// Output:
	// invalid options of a shard:
	// Options.Ring is required
	// Options.Kinds is required
}
