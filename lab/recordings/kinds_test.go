// SPDX-License-Identifier: Apache-2.0

package recordings

import (
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// definitions are the kinds of the corpus, with a status and without a schema.
func definitions() (all []any) {
	for _, kind := range []string{"Widget", "Bucket"} {
		plural := strings.ToLower(kind) + "s"
		content := apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}
		all = append(all, &apiextensionsv1.CustomResourceDefinition{
			TypeMeta: metav1.TypeMeta{
				APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "CustomResourceDefinition",
			},
			ObjectMeta: metav1.ObjectMeta{Name: plural + ".corpus.trueup.dev"},
			Spec: apiextensionsv1.CustomResourceDefinitionSpec{
				Group: "corpus.trueup.dev", Scope: apiextensionsv1.NamespaceScoped,
				Names: apiextensionsv1.CustomResourceDefinitionNames{
					Kind: kind, ListKind: kind + "List", Plural: plural, Singular: strings.ToLower(kind),
				},
				Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
					Name: "v1", Served: true, Storage: true,
					Subresources: &apiextensionsv1.CustomResourceSubresources{
						Status: &apiextensionsv1.CustomResourceSubresourceStatus{},
					},
					Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
						Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": content, "status": content},
					}},
				}},
			},
		})
	}
	return all
}
