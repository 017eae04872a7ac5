package etcd

import (
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"suffrage/membership"
)

// What Status holds of an alarm is read back whichever way the protobuf
// library spaces its text today.
func TestAlarmIn(t *testing.T) {
	for text, want := range map[string]membership.Alarm{
		(&pb.AlarmMember{MemberID: 0xbeef, Alarm: pb.AlarmType_NOSPACE}).String(): {Member: "beef", Kind: "NOSPACE"},
		(&pb.AlarmMember{Alarm: pb.AlarmType_CORRUPT}).String():                   {Member: "0", Kind: "CORRUPT"}, // etcd may name nobody
		"memberID:48879  alarm:NOSPACE ":                                          {Member: "beef", Kind: "NOSPACE"},
	} {
		if got, ok := alarmIn(text); !ok || got != want {
			t.Errorf("%q: %+v, %v", text, got, ok)
		}
	}
	if _, ok := alarmIn("etcdserver: no leader"); ok {
		t.Error("an error that is no alarm was taken for one")
	}
}

func FuzzAlarmIn(f *testing.F) {
	for _, s := range []string{"memberID:1 alarm:NOSPACE", "alarm:CORRUPT", "memberID:99999999999999999999999 alarm:NOSPACE", "etcdserver: no leader", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if a, ok := alarmIn(s); ok && (a.Kind == "" || a.Member == "") {
			t.Errorf("%q: half an alarm %+v", s, a)
		}
	})
}

// What stands in etcd may have been written by anybody.
func FuzzMark(f *testing.F) {
	for _, s := range []string{`{}`, `{"eligible":{"value":true,"by":"anna","at":"2026-03-01T00:00:00Z"}}`, `{"novel":1}`, `{} {}`, `null`, `[`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var m membership.Mark
		if err := strict(data, &m); err == nil && len(data) > maxMark {
			t.Errorf("%d bytes were taken", len(data))
		}
		_ = m.Word()
	})
}
