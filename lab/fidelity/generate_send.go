// SPDX-License-Identifier: Apache-2.0

package fidelity

import "net/http"

// Kinds and versions in bodies that are not the ones of the path.
var (
	foreignKinds = []Edit{
		Set("kind", "Nothing"), Set("kind", "Secret"), Set("kind", "StatefulSet"), Set("apiVersion", "v7"),
		Set("apiVersion", "apps/v1"), Set("apiVersion", "v1"),
	}
	noKind = []Edit{Remove("kind"), Remove("apiVersion")}
)

// foreign draws a change of the kind or the version.
func (s *generation) foreign() Edit { return pick(s, foreignKinds...) }

// send draws an HTTP request that no client sends. Few of them change anything.
func (s *generation) send(o *Operation) {
	*o = Operation{Verb: Send, Kind: o.Kind, Name: o.Name, Namespace: o.Namespace}
	o.Method = pick(s, http.MethodPut, http.MethodPut, http.MethodPost, http.MethodDelete, http.MethodDelete,
		http.MethodPatch, http.MethodGet, http.MethodGet)
	o.Media, o.Query = "application/json", "?dryRun=All"
	unserved := s.one(3) || o.Method == http.MethodPatch
	if unserved {
		o.Media = pick(s, "text/plain", "application/cbor", "application/apply-patch+cbor", "json", "*/*")
	}
	switch o.Method {
	case http.MethodPut:
		o.Base = pick(s, Blank, Last)
		o.Edits = []Edit{pick(s, append(noKind, Remove("metadata/name"), Set("metadata/name", "another"),
			Set("metadata/namespace", "another"), s.foreign())...)}
		if o.Kind.Custom && o.Edits[0].Path == "kind" && o.Edits[0].Value == nil {
			o.Base = Blank // the error quotes all of it
		}
	case http.MethodPost:
		o.Edits = []Edit{pick(s, append(noKind, s.foreign())...)}
	case http.MethodDelete:
		// Most deletions that a server accepts then fail, because the result of a dry run is not the result of a real server.
		o.Edits = []Edit{s.foreign(), Set("preconditions", Object{"uid": "another"})}
		if s.one(3) {
			o.Edits[0] = pick(s, Set("kind", "DeleteOptions"), Set("kind", "CreateOptions"), Set("gracePeriodSeconds", "x"))
		}
	case http.MethodGet: // without answers that go on
		o.Query = pick(s, "?", "?watch=true&timeoutSeconds=1&") + pick(s, "resourceVersionMatch=junk",
			"resourceVersionMatch=junk&resourceVersion=1", "sendInitialEvents=false&resourceVersionMatch=Exact",
			"sendInitialEvents=true&resourceVersionMatch=Exact&resourceVersion=0",
			"resourceVersionMatch=NotOlderThan&continue=x")
	}
}
