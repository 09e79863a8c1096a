// SPDX-License-Identifier: Apache-2.0

package console_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"trueup.dev/console"
	"trueup.dev/observe/recorder"
	"trueup.dev/observe/recording"
)

// TestRecording_howToRepeatIt tests that the page of an object leads to its recording.
func TestRecording_howToRepeatIt(t *testing.T) {
	r := recorder.New(recorder.Options{Objects: true})
	play(r, "broken", http.ErrHandlerTimeout)
	mux := http.NewServeMux()
	mux.Handle("/console/", http.StripPrefix("/console", console.Handler(r)))
	server := httptest.NewServer(mux)
	defer server.Close()

	const page, file = "/console/objects/database/default/broken", "/console/objects/database/default/broken/recording"
	_, body := get(t, server.URL+page, browser)
	_, link, found := strings.Cut(body, `<a href="../../..`)
	for !strings.HasPrefix(link, "/objects/database/default/broken/recording") && found {
		_, link, found = strings.Cut(link, `<a href="../../..`)
	}
	if !found {
		t.Errorf("the page has no link to the recording:\n%s", body)
	}
	response, body := get(t, server.URL+file, browser)
	got, err := recording.Read(strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if got.Object.String() != "Database default/broken" || len(got.Runs) != 1 || len(got.Runs[0].Calls) != 1 {
		t.Errorf("recording: %s", body)
	}
	if name := response.Header.Get("Content-Disposition"); name != "attachment; filename=database-default-broken.json" {
		t.Errorf("file: %s", name)
	}
	response, body = get(t, server.URL+strings.Replace(file, "broken", "other", 1), browser)
	if response.StatusCode != http.StatusNotFound || !strings.Contains(body, "there is no recording of this object") {
		t.Errorf("unknown object: status %d: %s", response.StatusCode, body)
	}
}

func TestRecording_recorderWithoutObjects(t *testing.T) {
	_, server := serve(t)
	_, body := get(t, server.URL+"/console/objects/database/default/broken", browser)
	if strings.Contains(body, "Record") {
		t.Errorf("the page leads to a recording:\n%s", body)
	}
	response, body := get(t, server.URL+"/console/objects/database/default/broken/recording", "application/json")
	if response.StatusCode != http.StatusNotFound || !strings.Contains(body, "set Objects in the options") {
		t.Errorf("status %d: %s", response.StatusCode, body)
	}
}
