// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	fakediscovery "k8s.io/client-go/discovery/fake"
	clientgotesting "k8s.io/client-go/testing"
)

// NewDiscovery returns a discovery client that knows the given API resources. The error lists all invalid ones.
func NewDiscovery(resources []*metav1.APIResourceList) (discovery.DiscoveryInterface, error) {
	var problems []error
	known := make([]*metav1.APIResourceList, len(resources))
	for i, list := range resources {
		if list == nil {
			problems = append(problems, fmt.Errorf("GivenAPIResources[%d]: is nil", i))
		} else if _, err := schema.ParseGroupVersion(list.GroupVersion); err != nil {
			problems = append(problems, fmt.Errorf("GivenAPIResources[%d]: GroupVersion: %w", i, err))
		}
		known[i] = list.DeepCopy()
	}
	return &fakediscovery.FakeDiscovery{Fake: &clientgotesting.Fake{Resources: known}}, errors.Join(problems...)
}

// NewMapper returns a mapper for API resources, which must be valid. It prefers the versions of a kind in their order.
func NewMapper(resources []*metav1.APIResourceList) meta.RESTMapper {
	versions := make([]schema.GroupVersion, len(resources))
	for i, list := range resources {
		versions[i], _ = schema.ParseGroupVersion(list.GroupVersion)
	}
	mapper := meta.NewDefaultRESTMapper(versions)
	for i, list := range resources {
		for _, resource := range list.APIResources {
			if strings.Contains(resource.Name, "/") {
				// The kind of a subresource must not be mapped to it.
				continue
			}
			version := versions[i]
			if resource.Group != "" {
				version.Group = resource.Group
			}
			if resource.Version != "" {
				version.Version = resource.Version
			}
			singular := resource.SingularName
			if singular == "" {
				singular = strings.ToLower(resource.Kind)
			}
			var scope meta.RESTScope = meta.RESTScopeRoot
			if resource.Namespaced {
				scope = meta.RESTScopeNamespace
			}
			mapper.AddSpecific(
				version.WithKind(resource.Kind), version.WithResource(resource.Name), version.WithResource(singular), scope,
			)
		}
	}
	return mapper
}
