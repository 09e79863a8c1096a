// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"slices"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// aggregatedType is the content type of aggregated discovery.
const aggregatedType = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// aggregated returns all resources of the core group, for "api", or of the other groups, for "apis".
func (t *Transport) aggregated(root string) any {
	list := &apidiscoveryv2.APIGroupDiscoveryList{TypeMeta: metav1.TypeMeta{
		Kind: "APIGroupDiscoveryList", APIVersion: apidiscoveryv2.SchemeGroupVersion.String(),
	}}
	switch root {
	case "api":
		list.Items = append(list.Items, apidiscoveryv2.APIGroupDiscovery{
			Versions: []apidiscoveryv2.APIVersionDiscovery{t.versionDiscovery(schema.GroupVersion{Version: "v1"})},
		})
	case "apis":
		for _, group := range t.groups() {
			item := apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: group.Name}}
			for _, v := range group.Versions {
				item.Versions = append(item.Versions, t.versionDiscovery(schema.GroupVersion{
					Group: group.Name, Version: v.Version,
				}))
			}
			list.Items = append(list.Items, item)
		}
	default:
		return nil
	}
	return list
}

// versionDiscovery returns the resources of a version, each with its subresources.
func (t *Transport) versionDiscovery(group schema.GroupVersion) apidiscoveryv2.APIVersionDiscovery {
	found := apidiscoveryv2.APIVersionDiscovery{
		Version: group.Version, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent,
	}
	list, _ := t.resources(group).(*metav1.APIResourceList)
	if list == nil {
		return found
	}
	for _, r := range list.APIResources {
		kind := &metav1.GroupVersionKind{Group: group.Group, Version: group.Version, Kind: r.Kind}
		if r.Version != "" {
			kind.Group, kind.Version = r.Group, r.Version
		}
		main, sub, isSub := strings.Cut(r.Name, "/")
		if !isSub {
			scope := apidiscoveryv2.ScopeCluster
			if r.Namespaced {
				scope = apidiscoveryv2.ScopeNamespace
			}
			found.Resources = append(found.Resources, apidiscoveryv2.APIResourceDiscovery{
				Resource: r.Name, ResponseKind: kind, Scope: scope, SingularResource: r.SingularName, Verbs: r.Verbs,
				ShortNames: r.ShortNames, Categories: r.Categories,
			})
			continue
		}
		i := slices.IndexFunc(found.Resources, func(r apidiscoveryv2.APIResourceDiscovery) bool { return r.Resource == main })
		found.Resources[i].Subresources = append(
			found.Resources[i].Subresources,
			apidiscoveryv2.APISubresourceDiscovery{Subresource: sub, ResponseKind: kind, Verbs: r.Verbs},
		)
	}
	return found
}

// shortNames are other names of built-in resources.
var shortNames = map[string][]string{
	"certificatesigningrequests": {"csr"}, "configmaps": {"cm"}, "cronjobs": {"cj"},
	"customresourcedefinitions": {"crd", "crds"}, "daemonsets": {"ds"}, "deployments": {"deploy"}, "endpoints": {"ep"},
	"events": {"ev"}, "horizontalpodautoscalers": {"hpa"}, "ingresses": {"ing"}, "ipaddresses": {"ip"},
	"limitranges": {"limits"}, "namespaces": {"ns"}, "networkpolicies": {"netpol"}, "nodes": {"no"},
	"persistentvolumeclaims": {"pvc"}, "persistentvolumes": {"pv"}, "poddisruptionbudgets": {"pdb"}, "pods": {"po"},
	"priorityclasses": {"pc"}, "replicasets": {"rs"}, "replicationcontrollers": {"rc"}, "resourcequotas": {"quota"},
	"serviceaccounts": {"sa"}, "services": {"svc"}, "statefulsets": {"sts"}, "storageclasses": {"sc"},
	"volumeattributesclasses": {"vac"},
}

// categories are groups of built-in resources.
var categories = map[string][]string{
	"cronjobs": {"all"}, "daemonsets": {"all"}, "deployments": {"all"}, "horizontalpodautoscalers": {"all"},
	"jobs": {"all"}, "pods": {"all"}, "replicasets": {"all"}, "replicationcontrollers": {"all"}, "services": {"all"},
	"statefulsets": {"all"}, "customresourcedefinitions": {"api-extensions"},
	"mutatingwebhookconfigurations": {"api-extensions"}, "validatingwebhookconfigurations": {"api-extensions"},
}
