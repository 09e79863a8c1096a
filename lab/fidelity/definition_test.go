// SPDX-License-Identifier: Apache-2.0

package fidelity

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// definitions are the CustomResourceDefinitions of the catalog.
const definitions = `
- metadata: {name: gadgets.fidelity.trueup.dev}
  spec:
    group: fidelity.trueup.dev
    names: {kind: Gadget, listKind: GadgetList, plural: gadgets, singular: gadget}
    scope: Namespaced
    versions:
    - name: v1
      served: true
      storage: true
      subresources:
        status: {}
        scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas, labelSelectorPath: .status.selector}
      selectableFields:
      - jsonPath: .spec.mode
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              required: [required]
              default: {required: default}
              x-kubernetes-validations:
              - {rule: "!has(self.replicas) || self.replicas <= self.size * 10", message: too many replicas for the size}
              - {rule: "!has(oldSelf.class) || has(self.class)", message: the class cannot be taken away}
              properties:
                size: {type: integer, format: int32, default: 3, minimum: 0, maximum: 10}
                mode: {type: string, default: fast, enum: [fast, slow]}
                class:
                  type: string
                  maxLength: 8
                  x-kubernetes-validations:
                  - {rule: self == oldSelf, message: the class cannot change}
                replicas: {type: integer, format: int32}
                port: {x-kubernetes-int-or-string: true}
                memory: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}], pattern: '^[0-9]+(\.[0-9]+)?(m|k|M|G|Ki|Mi|Gi)?$'}
                parts:
                  type: array
                  maxItems: 4
                  x-kubernetes-list-type: map
                  x-kubernetes-list-map-keys: [name]
                  items:
                    type: object
                    required: [name]
                    properties:
                      name: {type: string, maxLength: 10}
                      weight: {type: integer, format: int32, default: 1}
                    x-kubernetes-validations:
                    - {rule: "self.weight >= 0", messageExpression: "'the weight of ' + self.name + ' is negative'", reason: FieldValueForbidden, fieldPath: .weight}
                tags: {type: array, x-kubernetes-list-type: set, items: {type: string}}
                steps: {type: array, items: {type: string, minLength: 1}}
                nested:
                  type: object
                  properties:
                    enabled: {type: boolean, default: true}
                    level: {type: string, default: low}
                limits:
                  type: object
                  additionalProperties: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}
                note: {type: string, nullable: true}
                free: {type: object, x-kubernetes-preserve-unknown-fields: true}
                until: {type: string, format: date-time}
                required: {type: string, minLength: 1}
            status:
              type: object
              properties:
                observedGeneration: {type: integer, format: int64}
                phase: {type: string, enum: [Pending, Ready]}
                replicas: {type: integer, format: int32}
                selector: {type: string}
                conditions:
                  type: array
                  x-kubernetes-list-type: map
                  x-kubernetes-list-map-keys: [type]
                  items:
                    type: object
                    required: [type, status, lastTransitionTime, reason, message]
                    properties:
                      type: {type: string}
                      status: {type: string, enum: ["True", "False", Unknown]}
                      lastTransitionTime: {type: string, format: date-time}
                      observedGeneration: {type: integer, format: int64, minimum: 0}
                      reason: {type: string, minLength: 1}
                      message: {type: string}
- metadata: {name: gizmos.fidelity.trueup.dev}
  spec:
    group: fidelity.trueup.dev
    names: {kind: Gizmo, listKind: GizmoList, plural: gizmos, singular: gizmo}
    scope: Namespaced
    versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          required: [spec]
          properties:
            spec:
              type: object
              properties:
                active: {type: boolean}
                quantity: {x-kubernetes-int-or-string: true}
                until: {type: string, format: date-time}
                nested: {type: object, default: {}, properties: {level: {type: string, default: low}}}
                ratio: {type: number, maximum: 1}
                items:
                  type: array
                  items: {type: object, properties: {key: {type: string}, value: {type: string, default: none}}}
                any: {x-kubernetes-preserve-unknown-fields: true}
                embedded: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}
                byName: {type: object, additionalProperties: {type: integer}}
                atomic: {type: object, x-kubernetes-map-type: atomic, properties: {a: {type: string}, b: {type: string}}}
            status:
              type: object
              x-kubernetes-preserve-unknown-fields: true
            data: {type: string, maxLength: 5}
- metadata: {name: realms.fidelity.trueup.dev}
  spec:
    group: fidelity.trueup.dev
    names: {kind: Realm, listKind: RealmList, plural: realms, singular: realm}
    scope: Cluster
    versions:
    - name: v1
      served: true
      storage: true
      subresources: {status: {}}
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              default: {}
              properties:
                owner: {type: string, default: none}
                members: {type: array, x-kubernetes-list-type: set, items: {type: string}}
            status: {type: object, properties: {members: {type: integer}}}
`

func newDefinitions(t testing.TB) (parsed []*apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(definitions), &parsed); err != nil {
		t.Fatal(err)
	}
	return parsed
}
