// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/endpoints/request"
)

func TestProtectRejectsWritesWithoutSpace(t *testing.T) {
	const problem = "the disk is full"
	resource := func(verb, group, subresource string) *request.RequestInfo {
		return &request.RequestInfo{
			IsResourceRequest: true, Verb: verb, APIGroup: group, APIVersion: "v1", Subresource: subresource,
		}
	}
	tests := map[string]struct {
		info *request.RequestInfo
		full bool
		want int
	}{
		"create":                   {resource("create", "apps", ""), true, http.StatusInsufficientStorage},
		"update":                   {resource("update", "", "status"), true, http.StatusInsufficientStorage},
		"patch":                    {resource("patch", "", ""), true, http.StatusInsufficientStorage},
		"binding of a pod":         {resource("create", "", "binding"), true, http.StatusInsufficientStorage},
		"create with space":        {resource("create", "apps", ""), false, http.StatusOK},
		"token":                    {resource("create", "", "token"), true, http.StatusOK},
		"review":                   {resource("create", "authorization.k8s.io", ""), true, http.StatusOK},
		"get":                      {resource("get", "", ""), true, http.StatusOK},
		"watch":                    {resource("watch", "", ""), true, http.StatusOK},
		"delete":                   {resource("delete", "", ""), true, http.StatusOK},
		"delete of a collection":   {resource("deletecollection", "", ""), true, http.StatusOK},
		"not for a resource":       {&request.RequestInfo{Verb: "create"}, true, http.StatusOK},
		"not known what it is for": {nil, true, http.StatusOK},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var s space
			if test.full {
				reason := problem
				s.full.Store(&reason)
			}
			handler := s.protect(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil)
			if test.info != nil {
				r = r.WithContext(request.WithRequestInfo(r.Context(), test.info))
			}
			recorder := httptest.NewRecorder()
			handler.ServeHTTP(recorder, r)
			if recorder.Code != test.want {
				t.Errorf("status = %d, want %d", recorder.Code, test.want)
			}
			if rejected := strings.Contains(recorder.Body.String(), problem); rejected != (test.want != http.StatusOK) {
				t.Errorf("body = %q, want the problem if it is rejected", recorder.Body)
			}
		})
	}
}

func TestStartNeedsSpace(t *testing.T) {
	if err := checkSpace(t.TempDir()); err != nil {
		t.Errorf("space of a temporary directory: %v", err)
	}
	if err := checkSpace("/does/not/exist"); err == nil {
		t.Error("space of a directory that does not exist: no error")
	}
	got := diskFull("/data", 3<<20, 32<<20)
	want := "the control plane's disk is full: 3.0 MiB free in /data, at least 32 MiB are required; remove files there"
	if got != want {
		t.Errorf("message = %q, want %q", got, want)
	}
}
