package record_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/duemq/duemq/internal/record"
)

// goldenFields names the payload bytes of the first samples of each command.
// The widths are counted by hand from docs/formats/record.md, not by code.
func goldenFields() map[record.CommandType][][]field {
	return addLaterFields(map[record.CommandType][][]field{
		record.CommandSend: {
			{
				{4, "CRC-32C of the rest of the payload"},
				{1, "bits: no optional part"},
				{1, "queue 9"},
				{6, "stored: 1790000000123"},
				{5, `body "hello"`},
			},
			sendFields(),
		},
		record.CommandAck: {{
			{1, "group 3"},
			{2, "queue 300"},
			{1, "3 ranges"},
			{2, "from 10, 4 offsets"},
			{2, "0 further, 1 offset: 14"},
			{3, "985 further, 1 offset: 1000"},
		}},
		record.CommandRelease: {{
			{1, "group 3"},
			{2, "queue 300"},
			{1, "reason 1: nack"},
			{1, "2 entries"},
			{1, "offset 10"},
			{1, "attempt 1"},
			{6, "due: 1790000010123"},
			{1, "offset 9"},
			{1, "attempt 2"},
			{1, "due: 0, at once"},
		}},
		record.CommandCommit:     {{{1, "group 3"}, {2, "queue 300"}, {3, "offset 70000"}}},
		record.CommandCancel:     {append(keyFields(), field{1, "level 16"})},
		record.CommandReschedule: {append(keyFields(), field{2, "size 300"}, field{4, `hash of tag "paid"`}, field{1, "level 16"}, field{6, "new due: 1790000060123"})},
		record.CommandTopic: {append([]field{
			{1, "number 5"}, {2, "first queue 300"}, {1, "8 queues"}, {7, `name "orders"`},
		}, attributeFields()...)},
		record.CommandEndTopic: {{{1, "number 5"}, {1, "purge: yes"}, {2, "first queue 308"}}},
		record.CommandGroup: {append([]field{
			{1, "number 3"}, {1, "start 3: at"}, {6, "start time: 1790000000123"}, {8, `name "billing"`},
		}, attributeFields()...)},
		record.CommandEndGroup: {{{1, "number 3"}}},
		record.CommandSetting:  {{{18, `name "messageDelayLevel"`}, {10, `value "1s 5s 10s"`}}},
		record.CommandPause:    {{{1, "topic 5"}, {1, "paused: yes"}}},
		record.CommandTrim:     {{{6, "before: 1790000000123"}}},
		record.CommandCarry:    {{{5, "from 0x40000000"}, {5, "to 0x80000000"}}},
	})
}

func keyFields() []field {
	return []field{{6, "due: 1790001800123"}, {5, "id 0x12345678"}, {1, "kind 1: message"}, {1, "queue 9"}}
}

func attributeFields() []field {
	return []field{{1, "2 attributes"}, {13, `name "message.type"`}, {6, `value "DELAY"`}, {5, `name "note"`}, {1, `value ""`}}
}

func sendFields() []field {
	return []field{
		{4, "CRC-32C of the rest of the payload"},
		{1, "bits: every optional part"},
		{2, "queue 300"},
		{6, "stored: 1790000000123"},
		{1, "born: 12 ms earlier"},
		{4, "due: 1800000 ms later"},
		{1, "level 16"},
		{1, "flags 7"},
		{2, "system flags 0x100"},
		{9, `key "order-42"`},
		{5, `tag "paid"`},
		{1, "2 properties"},
		{9, `name "UNIQ_KEY"`},
		{9, `value "7F000001"`},
		{7, `name "region"`},
		{3, `value "eu"`},
		{1, "5 extensions"},
		{1, "extension 1: origin"},
		{9, "id 0x12345678"},
		{1, "extension 2: attempts"},
		{5, "3"},
		{1, "extension 3: idempotency"},
		{17, "128-bit hash"},
		{1, "extension 4: name"},
		{9, `"close-42"`},
		{1, "extension 5: born host"},
		{7, "127.0.0.1, port 10911"},
		{15, `body "close the order"`},
	}
}

const numbersFile = "numbers.txt"

// The numbers that stand in logs are kept like bytes: append, never renumber.
func TestGoldenNumbers(t *testing.T) {
	var s strings.Builder
	s.WriteString("# Numbers that stand in logs. Append, never renumber.\n")
	for _, n := range []struct {
		name  string
		value any
	}{
		{"EntryCommands", record.EntryCommands},
		{"EntryNoop", record.EntryNoop},
		{"EntryConfiguration", record.EntryConfiguration},
		{"EntryBarrier", record.EntryBarrier},
		{"FlagRebase", record.FlagRebase},
		{"CommandSend", record.CommandSend},
		{"CommandAck", record.CommandAck},
		{"CommandRelease", record.CommandRelease},
		{"CommandCommit", record.CommandCommit},
		{"CommandCancel", record.CommandCancel},
		{"CommandReschedule", record.CommandReschedule},
		{"CommandTopic", record.CommandTopic},
		{"CommandEndTopic", record.CommandEndTopic},
		{"CommandGroup", record.CommandGroup},
		{"CommandEndGroup", record.CommandEndGroup},
		{"CommandSetting", record.CommandSetting},
		{"CommandPause", record.CommandPause},
		{"CommandTrim", record.CommandTrim},
		{"CommandCarry", record.CommandCarry},
		{"CommandLease", record.CommandLease},
		{"CommandPost", record.CommandPost},
		{"CommandEndHalf", record.CommandEndHalf},
		{"CommandReset", record.CommandReset},
		{"CommandOperation", record.CommandOperation},
		{"CommandOperate", record.CommandOperate},
		{"KindMessage", record.KindMessage},
		{"KindCheck", record.KindCheck},
		{"KindRetry", record.KindRetry},
		{"ReasonNack", record.ReasonNack},
		{"ReasonExpiry", record.ReasonExpiry},
		{"StartEarliest", record.StartEarliest},
		{"StartLatest", record.StartLatest},
		{"StartAt", record.StartAt},
		{"OperationRunning", record.OperationRunning},
		{"OperationDone", record.OperationDone},
		{"OperationStopped", record.OperationStopped},
		{"ExtOrigin", record.ExtOrigin},
		{"ExtAttempts", record.ExtAttempts},
		{"ExtIdempotency", record.ExtIdempotency},
		{"ExtName", record.ExtName},
		{"ExtBornHost", record.ExtBornHost},
		{"ExtTopic", record.ExtTopic},
		{"ExtReason", record.ExtReason},
		{"BatchMagic", record.BatchMagic},
		{"BatchVersion", record.BatchVersion},
		{"BatchHeader", record.BatchHeader},
		{"MaxBatch", record.MaxBatch},
		{"MaxQueues", record.MaxQueues},
	} {
		fmt.Fprintf(&s, "%-20s %d\n", n.name, n.value)
	}
	if kept := goldenFile(t, numbersFile, s.String()); kept != s.String() {
		t.Errorf("%s: %s.\nkept:\n%s\nnow:\n%s", numbersFile, frozen, kept, s.String())
	}
}
