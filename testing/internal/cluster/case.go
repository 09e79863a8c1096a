// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// Case is the part of a config that a cluster needs.
type Case struct {
	// Name is the name of the config. It selects the cluster.
	Name string
	// Scheme has the Go types of objects.
	Scheme *runtime.Scheme
	// Realistic shows created objects with the metadata that a realistic API in memory gives them.
	Realistic bool
	// GivenObjects exist from the start.
	GivenObjects []client.Object
	// APIGivenObjects exist from the start for the reader only, unless they are in GivenObjects too.
	APIGivenObjects []client.Object
	// GivenAPIResources must be served by the cluster.
	GivenAPIResources []*metav1.APIResourceList
	// RESTMapper is the mapper of the client. Nil is the mapper of the cluster.
	RESTMapper meta.RESTMapper
	// WithClientBuilder sets the indexes that the client lists by. Nil for none. Other settings skip the case.
	WithClientBuilder func(*fake.ClientBuilder) *fake.ClientBuilder
	// Created are the objects that the case expects to be created or applied. Their namespaces are created first.
	Created []Created
}

// Created identifies an object that a case expects to be created.
type Created struct {
	Group, Kind, Namespace, Name string
}
